"""What the steps of a transformer do to the columns of a record."""
