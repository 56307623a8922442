"""The rebuild of a join: its states are made again from the inputs, and the target gets the net changes.

`rebuild` has the steps. What it loads and compares is the audit's.
"""
