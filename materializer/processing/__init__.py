"""What is done with the messages of one raw topic: they are folded, and the result becomes change messages."""
