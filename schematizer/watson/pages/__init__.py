"""The pages, by subject; each module has router(site)."""
