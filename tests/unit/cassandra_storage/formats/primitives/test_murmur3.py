"""Tokens against those of Cassandra's driver."""

from __future__ import annotations

from cassandra.metadata import Murmur3Token
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.primitives.murmur3 import token


@given(st.binary(max_size=80))
def test_a_token_is_the_drivers(key: bytes) -> None:
    assert token(key) == Murmur3Token.hash_fn(key)
