"""Cassandra's formats and rules: they decode bytes and types, and merge rows.

No I/O and no third-party imports. Module names follow Cassandra's classes, so that a reader can hold the Java file
beside them. A room imports only those below it:

- `json_forms`: types, values, updates and tables as JSON.
- `commitlog`, `sstable`: the segments of a commit log; an SSTable's components, its rows, and the merge of several.
- `merge`: which of two writes wins, what a compaction removes, and the tables that rows of system_schema add up to.
- `rows`: clusterings, rows and partition updates, and how they are serialized.
- `schema`: tables and their columns, from CQL and from the rows of system_schema.
- `types`: CQL types, the bytes of their values, their texts and their order.
- `primitives`: variable-length integers, Java's numbers, and tokens.
- `versions`, `errors`: the differences between Cassandra's versions, and the one exception family.
"""
