"""Reads a Cassandra node's commit log and publishes each mutation to Kafka as raw messages.

A mutation passes through the rooms of this package like this:

1. `app` builds the parts, and `loop` repeats one round until it is stopped. It reads the schema first: `tables` knows
   the node's tables, and `topics` has an open raw topic for each that is published. A table without one waits.
2. `log` finds the segments in `cdc_raw` and the spool that have something new, and reads what is durable.
3. `mutations` splits a mutation into raw messages, in the native core or in Python. What no schema fits is quarantined.
4. `sending` sends the messages to the raw topics of their tables by the producers of `kafka`. It also sends the ends of
   truncated and dropped tables, and what waiting tables have missed.
5. `upkeep` takes Kafka's acknowledgements, moves and saves the position, and removes finished segments.

Work that has to wait, for a server or for room in a queue, is a generator (`waits`): `loop` runs it, and does the
upkeep during each wait. `monitoring` shows the status, and `losses` looks for settings that lose changes. `snapshot`
reads the rows that a table had before, in a process of its own. `commands` works beside the running publisher. Each
room imports only rooms below it (see the layers in pyproject.toml).
"""
