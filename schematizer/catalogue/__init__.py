"""The operations of the catalogue, without HTTP. Pages, REST and commands call them on `Catalogue`."""
