"""The audit of a join: the target as it was at a cut, against the join of the inputs' rows at the same cut.

`stage` finds the topics and the schemas. `cut` reads each partition of the internal topic up to its committed position:
that gives the frontier, which is the next offset of each partition of the inputs. `inputs` loads the inputs' messages
before the frontier into a scratch state (`scratch`), and `output` folds the target's messages of the cut into it.
`compare` makes the joined rows of the scratch state and compares. `reading` reads partitions up to their ends.
"""
