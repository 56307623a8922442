"""The plan of an environment: what its files want, compared with what is there and with what was made before.

`wanted` reads the wish from a repository, `differences` compares, `dangers` says what a change would lose, and
`reports` shows the plan. None of them asks a server.
"""
