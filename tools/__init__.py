"""Tools that build: distributions, and generated parts of the docs."""
