"""Joins of TPC-H's tables, with new orders, deletions and key moves, judged by DuckDB. No servers.

`data` makes tables and changes. `joins` has the joins, and their SQL. `pipeline` routes and joins in this process, as
workers do. `check` compares.
"""
