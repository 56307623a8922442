"""Are the orders of our keys those of Cassandra's comparators? Random types, values, clusterings, bounds and paths.

`make verify WHAT=oracle-types`: a line a version with what was compared; the exit status is 1 if anything differed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.byte_comparable import (
    bound_encoder,
    clustering_encoder,
    path_encoder,
    value_encoder,
)
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.cql_types import parse_type, type_text
from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, SetType, UserType
from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.verify.oracle.type_orders import TypeOrders
from dev.verify.oracle.type_values import COMPARABLE, KEYSPACE, USER_TYPES, TypeValues

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VALUES = 24
TOLD = 30  # s between lines of progress
BOUNDS = (Kind.EXCL_END_BOUND, Kind.INCL_START_BOUND, Kind.INCL_END_BOUND, Kind.EXCL_START_BOUND)


class Compared(NamedTuple):
    """The result of a comparison."""

    # The number of pairs that Cassandra could order.
    pairs: int
    # The pairs that we order otherwise, in words.
    differences: list[str]


def compare_orders(version: str, rounds: int, seed: int) -> Iterator[Compared]:
    """One for each of the rounds' three kinds: values, clusterings with bounds, and cell paths."""
    with TypeOrders(version, USER_TYPES) as cassandra:
        for number in range(rounds):
            values = TypeValues(
                random.Random(f"{seed} {number}"), is_plain=number % 2 == 0, has_vectors=version == "5.0"
            )
            type_ = values.type(COMPARABLE)
            drawn = [values.value(type_) for _ in range(VALUES)]
            keys = list(map(value_encoder(type_), drawn))
            yield compared(type_text(type_), keys, cassandra.values(type_, drawn))
            columns, prefixes = random_clusterings(values)
            told = ", ".join(type_text(column.type) for column in columns)
            yield compared(told, keys_of(columns, prefixes), cassandra.clusterings(columns, prefixes))
            multi_cell = values.multi_cell_type(COMPARABLE)
            paths = [random_path(values, multi_cell) for _ in range(VALUES)]
            keys = list(map(path_encoder(multi_cell), paths))
            yield compared(f"paths of {type_text(multi_cell)}", keys, cassandra.paths(multi_cell, paths))


def compared(what: str, keys: list[bytes], order: list[str]) -> Compared:
    pairs, differences = 0, []
    for i, j in itertools.product(range(len(keys)), repeat=2):
        if order[i][j] == "?":
            continue
        pairs += 1
        ours = "<" if keys[i] < keys[j] else ">" if keys[i] > keys[j] else "="
        if order[i][j] != ours:
            differences.append(f"{what}: {keys[i].hex()} {ours} {keys[j].hex()}, to Cassandra {order[i][j]}")
    return Compared(pairs, differences)


def random_clusterings(values: TypeValues) -> tuple[tuple[ColumnMetadata, ...], list[ClusteringBound]]:
    """Columns, and clusterings (as bounds of the kind CLUSTERING) and bounds of few values over them."""
    columns = tuple(
        ColumnMetadata(f"c{i}", values.type(COMPARABLE, 1), ColumnKind.CLUSTERING, i, values.rng.random() < 0.5)
        for i in range(values.rng.randint(1, 3))
    )
    few = [[values.value(column.type) for _ in range(4)] + [None] for column in columns]
    return columns, [_prefix(values.rng, few) for _ in range(VALUES)]


def _prefix(rng: random.Random, few: list[list[bytes | None]]) -> ClusteringBound:
    if rng.random() < 0.5:
        return ClusteringBound(Kind.CLUSTERING, tuple(map(rng.choice, few)))
    return ClusteringBound(rng.choice(BOUNDS), tuple(map(rng.choice, few[: rng.randint(0, len(few))])))


def keys_of(columns: tuple[ColumnMetadata, ...], prefixes: list[ClusteringBound]) -> list[bytes]:
    of_row, of_bound = clustering_encoder(columns), bound_encoder(columns)
    return [of_row(one.values) if one.kind is Kind.CLUSTERING else of_bound(one) for one in prefixes]


def random_path(values: TypeValues, type_: CqlType) -> bytes:
    match type_:
        case MapType(keys, _, _):
            return values.value(keys)
        case SetType(of, _):
            return values.value(of)
        case ListType():
            return TypeValues(values.rng, is_plain=True).value(parse_type("timeuuid", KEYSPACE, {}))
        case UserType():
            return values.rng.randrange(len(type_.field_names)).to_bytes(2, "big")
    raise AssertionError(type_)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("dev.verify.oracle.order_check", description=__doc__)
    parser.add_argument("--versions", default=",".join(VERSIONS), help="by commas (default: all)")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="for each version (default: 1000000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    results = [_check(version, options.pairs, options.seed) for version in options.versions.split(",")]
    return int(any(results))


def _check(version: str, wanted: int, seed: int) -> int:
    """Return how many pairs differ."""
    started = told = time.monotonic()
    pairs, differences = 0, 0
    for one in compare_orders(version, sys.maxsize, seed):
        pairs += one.pairs
        differences += len(one.differences)
        for difference in one.differences[:3]:
            _print_line(f"DIFFERENCE {difference}")
        if time.monotonic() - told > TOLD:
            told = time.monotonic()
            _print_line(f"{version}: {pairs} of {wanted} pairs")
        if pairs >= wanted:
            break
    _print_line(f"{version}: {pairs} pairs in {time.monotonic() - started:.0f} s, {differences} ordered otherwise")
    return differences


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
