"""Sends what a table held before its changes were published: a snapshot of this node's SSTables (decision 0034).

`records` are the files in the state directory through which the command, the publisher and the worker agree. The
publisher (`supervisor`) starts one worker process at a time (`worker`), which takes the steps in order (`run`).
"""
