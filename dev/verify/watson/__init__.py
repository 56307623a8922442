"""Uses Watson in a real browser: measures the way to a field's meaning, runs axe, takes pictures for the docs."""
