"""Makes the tables of an Iceberg catalog from the file events.

One process commits each table. The offset of the last event that a table has is a property of the table, which is
committed together with the files: a table has the files of an event once, whatever is killed.
"""
