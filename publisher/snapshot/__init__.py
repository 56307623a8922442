"""Sends the rows that a table had before its changes were published, from this node's SSTables (decision 0034).

The command, the publisher and the worker exchange `records`: files in the state directory. The publisher
(`supervisor`) starts one worker process at a time (`worker`), which takes the steps in order (`run`).
"""
