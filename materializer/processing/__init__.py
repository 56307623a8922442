"""The work on the messages of one raw topic: they are folded, and the result becomes change messages."""
