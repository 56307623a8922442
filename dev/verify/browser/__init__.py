"""Opens pages in headless Chromium, uses them like a person, checks them with axe-core and takes pictures."""
