"""Topics as reviewed files in git: `cassandra-schematizer topics` (docs/guides/topic-files.md).

`files` reads a repository: one file of settings (`catalogue.toml`), and for each topic and environment a folder with
`topic.toml` and schemas. `rules` checks them, and asks no server.
"""
