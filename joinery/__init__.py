"""Joins of change topics without a time window, from a configuration file: a joined row for each combination of rows.

A change passes through these rooms: `routing` cuts the needed columns out of an input's message, and makes messages of
the internal topic, which is partitioned by join key. `joining` is the join of one partition of that topic, a
pure function from a state and messages to writes and changes. `planning` compares the definitions with the schemas of
the inputs, and makes the schemas of the joined rows. `definition` and `definition_file` are the joins file.
"""
