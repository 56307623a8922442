"""A Spark job that turns raw messages into row changes.

A message passes through the rooms of this package like this:

1. A publisher has sent the message to a raw topic. `job/planner` plans a batch, and `stream_runtime` starts its tasks.
2. `worker/worker_loop`: a worker polls its raw partitions, and gives the messages of one after another to its task.
3. `stream_runtime.exactly_once` cuts them into chunks. For each chunk, the steps 4 to 7 are one Kafka transaction.
4. `fold` decodes the chunk and merges it into the stored rows. It is a pure function: (state, messages) -> (writes,
   changes). `rows` says what is stored of a Cassandra partition, and what SELECT shows of it.
5. `output` encodes each change as an Avro message for a change topic. A message that cannot be read becomes a
   dead-lettered message.
6. `stream_runtime.kafka` sends them in the transaction. `stream_runtime.state` saves the writes as a changelog in the
   checkpoint location.
7. The transaction commits the messages and the raw partition's position, which names the new version of the state.
8. `stream_runtime.state` applies the changelog to the local RocksDB, and sometimes uploads a snapshot.

After a crash, the next task reads the committed position and restores that version. `commands` works on positions and
states from the command line. Each room imports only rooms below it (see the layers in pyproject.toml).
"""
