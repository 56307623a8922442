"""Copies another registry with its ids: `source` reads it, `compare` finds what is missing here, `copy` adds that."""
