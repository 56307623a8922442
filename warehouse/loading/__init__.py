"""A table's task: messages become rows, and rows become loads."""
