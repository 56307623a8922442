"""The files of a repository: their models, how they are read, their JSON Schemas, and new ones."""
