"""Opens the docs' site in a real browser: every page, search, light and dark, a phone, axe, pictures for the docs."""
