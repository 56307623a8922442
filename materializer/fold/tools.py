"""The tools of the fold of one Cassandra partition: those of its table, and the event that it folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cassandra_storage.formats.merge.reconciliation import RowMerger
from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound
from cdc_common.messages.changes import Source
from materializer.records import Change
from materializer.rows.budget import Budget
from materializer.rows.catalog import SchemaId
from materializer.rows.expiry import NowInSeconds
from materializer.rows.overlay import Overlay
from materializer.rows.partition_state import SequenceFloor
from materializer.rows.row_codec import RowCodec
from materializer.rows.row_image import RowImager
from materializer.rows.timers import Timers


class TableTools(NamedTuple):
    """The tools that the folds of all Cassandra partitions of one table use."""

    # The state as the chunk has changed it so far.
    overlay: Overlay
    # The chunk's changes, in order. Each fold appends its own.
    changes: list[Change]
    # What the chunk may still read and write.
    budget: Budget
    # Encodes and decodes stored rows.
    codec: RowCodec
    # Merges versions of a row.
    merger: RowMerger
    # Makes what SELECT shows of a row.
    imager: RowImager
    # The newest schema, under which changes are made.
    schema: SchemaId
    # The byte-comparable key of a clustering.
    clustering_key: Callable[[Clustering], bytes]
    # The byte-comparable key of a bound of a range.
    bound_key: Callable[[ClusteringBound], bytes]
    # Whether a Cassandra partition may have several rows.
    has_clustering: bool
    # The seconds at which something expires or can be purged.
    timers: Timers
    # The first row_sequence of a new row.
    floor: SequenceFloor


class Event(NamedTuple):
    """The write, or the expiry of one second, that is folded."""

    # The serialized key of its Cassandra partition.
    partition_key: bytes
    # The `source` of its changes.
    source: Source
    # The seconds at which it is decided what has expired.
    now: NowInSeconds
    # As in FanOutContinuation.
    completes_record: bool = False
