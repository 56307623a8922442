"""Watson: web pages that show the catalogue, rendered in the registry's process."""
