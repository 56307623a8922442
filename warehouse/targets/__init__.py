"""The warehouses: how each stages rows, and the transaction that all have in common."""
