"""The catalogue's operations, without HTTP: what pages, REST and commands call. `Catalogue` has them all."""
