"""The commands beside `serve`: what each does, for schematizer.cli."""
