"""From messages to committed files.

`rows` makes Arrow rows of a batch of messages, with columns that `columns` numbers for the table, and times that
`event_time` finds. `spill` keeps them on the worker's disk until `cut` says that a cut ends. `intent` is what is
decided then, `parquet` makes the files, and `share_task` is the protocol around all of it.
"""
