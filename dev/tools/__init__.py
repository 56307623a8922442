"""Tools that build distributions and the generated parts of the docs."""
