"""Shared by all programs: settings, error codes, the command line, messages, and clients of Cassandra and Kafka.

It has rooms, and each room imports only those below it. `program` is the frame of a program: its command line, log,
operations port and status. `node` knows the Cassandra node on this machine, and the rows by which publishers agree on a
snapshot. `clients` are the connections to Cassandra, Kafka and the schema registry. `messages` are the messages in
Kafka, and `messages.avro` their Avro forms. `settings` reads cdc.toml, the environment and flags. `errors` has the code
of each error, and explains it.
"""
