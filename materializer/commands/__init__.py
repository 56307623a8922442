"""What `cassandra-materializer` does beside the job: states, dead letters, rebuild, reshard."""
