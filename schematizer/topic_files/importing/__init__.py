"""Makes files of what runs: `gather` reads the servers of environments, `files` writes a repository that asks for that.

The folder is not the registry's `schematizer.importing`, which copies another registry.
"""
