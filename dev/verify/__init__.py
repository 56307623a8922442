"""Programs that compare the project with Cassandra itself and with models of it; not shipped."""
