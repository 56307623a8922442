"""Pages in headless Chromium: found on the PATH, visited as a person does, judged by axe-core, and photographed."""
