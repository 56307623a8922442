"""Keys whose byte order and identity are those of Cassandra's comparators (org.apache.cassandra.utils.bytecomparable)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cassandra_storage.clustering import Clustering, ClusteringBound
from cassandra_storage.marshal import CqlType
from cassandra_storage.schema import ColumnMetadata


def clustering_encoder(columns: Sequence[ColumnMetadata]) -> Callable[[Clustering], bytes]:
    """The function that makes clustering keys; build it once for a table."""
    raise NotImplementedError


def clustering_key(columns: Sequence[ColumnMetadata], values: Clustering) -> bytes:
    """clustering_encoder(columns)(values)."""
    return clustering_encoder(columns)(values)


def bound_keys(columns: Sequence[ColumnMetadata], start: ClusteringBound, end: ClusteringBound) -> tuple[bytes, bytes]:
    """(first, last): a clustering is in the range if and only if first <= its key < last."""
    raise NotImplementedError


def path_encoder(type_: CqlType) -> Callable[[bytes], bytes]:
    """The function that makes path keys of cells of a multi-cell column of the type."""
    raise NotImplementedError


def path_key(type_: CqlType, path: bytes) -> bytes:
    """path_encoder(type_)(path)."""
    return path_encoder(type_)(path)
