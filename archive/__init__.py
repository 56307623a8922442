"""A Spark job that keeps topics as Parquet files and as tables of a data lake, each message exactly once.

Messages pass through the rooms of this package like this:

1. `job` plans the topics and reads them, on the stream runtime. A share is a group of partitions of one topic.
2. `writer` makes Arrow columns of the messages, spills them to the local disk, and decides where a cut ends. It stores
   the intent of a cut, makes the cut's Parquet files, stores them, and commits a file event with the offsets.
3. `events` has the file events, which are the ledger of all files, and proves it.
4. `registrar` makes the tables of an Iceberg catalog from the file events.

`files` opens the store of the files, where each is written completely and only once (stream_runtime.stores). `records`
and `table_names` are what the rooms give each other. Each room imports only rooms below it (see the layers in
pyproject.toml).
"""
