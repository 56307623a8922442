"""The pages, one module for each subject. Each module has router(site)."""
