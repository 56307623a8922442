"""The raw topic of each published table. A table whose topic cannot be used waits, and all others go on."""
