"""Runs a job as a streaming query of Spark that reads Kafka topics and commits each result exactly once.

A program says what its sources are, what it does with a chunk of messages, and what it commits. A batch passes through
the rooms of this package like this:

1. `driver` plans a batch, and places the source partitions on workers. It stops a partition that fails, tries it again
   after a pause, measures the lag, and answers on the operations port.
2. `query` is the streaming query: Spark starts the workers' processes, and each gets its assignment.
3. `worker` holds what the driver and a worker give each other: Assignment, Task and TaskResult.
4. `kafka` reads the messages, and has the transactional producers, the committed positions and the topics.
5. `exactly_once` is the protocol: fence older attempts, read the position, process a chunk, commit messages and
   position in one transaction.
6. `state` is the state of a source partition: a RocksDB on the worker's machine, with changelogs and snapshots in the
   checkpoint location.

`commands` are the commands that each job has. `faults` and `words` are what a job says to its operator; a program has
its own. Each room imports only rooms below it (see the layers in pyproject.toml). Nothing here imports a program.
"""
