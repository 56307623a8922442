"""Clusterings and the bounds of ranges of them (org.apache.cassandra.db.Clustering, ClusteringBound)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

# One serialized value for each clustering column; None is CQL's null (only in compact tables), b"" an empty value.
Clustering: TypeAlias = tuple[bytes | None, ...]


class Kind(IntEnum):
    """ClusteringPrefix.Kind: the numbers are the ordinals that are written."""

    EXCL_END_BOUND = 0
    INCL_START_BOUND = 1
    EXCL_END_INCL_START_BOUNDARY = 2
    STATIC_CLUSTERING = 3
    CLUSTERING = 4
    INCL_END_EXCL_START_BOUNDARY = 5
    INCL_END_BOUND = 6
    EXCL_START_BOUND = 7


class ClusteringBound(NamedTuple):
    """ClusteringBound: one end of a range."""

    # Whether it is a start or an end, and whether it includes rows that have these values.
    kind: Kind
    # A prefix of the clustering, or all of it; empty for no bound.
    values: Clustering
