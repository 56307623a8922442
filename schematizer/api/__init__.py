"""The catalogue's REST interface, /api/v1, with its OpenAPI description."""
