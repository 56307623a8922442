"""The docs' site in a real browser: every page, search, both schemes, a phone, axe, and pictures for the docs."""
