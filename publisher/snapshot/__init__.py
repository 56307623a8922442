"""Sends the rows that a table had before its changes were published, from this node's SSTables (decision 0034).

1. The publisher's `supervisor` starts one worker process at a time. The publisher, the command and the worker exchange
   the records of `state`: files in the state directory.
2. The worker takes the snapshot's `steps` in order.
3. It reads the node and Kafka by `connections` of its own.
4. `rows` turns the table's SSTables into row images, and sends them.
"""
