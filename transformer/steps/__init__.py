"""The steps of a transformer: each changes columns of a record."""
