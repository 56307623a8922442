"""The commands of `cassandra-materializer` besides the job: states, dead letters, rebuild, reshard."""
