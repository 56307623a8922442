"""The rules of `topics check`: each has a code, a fix, and a way to waive it. None of them asks a server."""
