"""A Docker engine, the project's images on it, and what each of them does in a container."""
