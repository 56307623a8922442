"""A Spark job that joins change topics without a time window: a joined row for each combination of their rows.

A change passes through these rooms: `job` reads it in a Spark task. `routing` cuts the needed columns out of it, and
makes messages of the internal topic, which is partitioned by join key; `internal` has them in bytes. `joining` is the
join of one partition of that topic, a pure function from a state and messages to writes and changes. `output` makes
messages of these. `planning` compares the definitions with the schemas of the inputs, and makes the schemas of the
joined rows.
"""
