"""Watson in a real browser: how fast a field's meaning is found, what axe says, and pictures for the docs."""
