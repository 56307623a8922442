"""File events: they say which files hold a range of offsets.

The committed file events are a ledger. `file_event` is one of them, `ledger` reads them, and `verify` proves that each
message is in exactly one of them and that the files have what the events say.
"""
