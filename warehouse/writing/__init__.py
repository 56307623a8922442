"""The writer: objects of messages, each message in exactly one, and signals of them."""
