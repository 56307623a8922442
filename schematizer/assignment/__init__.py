"""Which topic a schema belongs to: a pure function of the schema and of the newest topic of its source."""
