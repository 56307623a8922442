"""A Spark job that loads topics into tables of a warehouse, each change exactly once.

Messages pass through the rooms of this package like this:

1. `job` plans the topics and reads them, on the stream runtime. A share is a whole topic, whose table it loads.
2. `loading` makes Arrow columns of the messages, keeps the newest version of each row, and decides when to load.
3. `tables` says which columns a table has for the schemas of its messages.
4. `writing` makes objects of messages for a warehouse that copies files of S3, and commits a signal of each batch with
   the offset. `loading` then loads by signals.
5. `targets` are the warehouses. A load is one transaction: it claims the table's state, alters the table for a newer
   schema, stages the rows, merges them, and stores the offsets after them.

`records`, `signals` and `names` are what the rooms give each other. Each room imports only rooms below it (see the
layers in pyproject.toml).
"""
