"""Fuzz targets for joins: the core and the Python code make the same of any bytes."""

from __future__ import annotations

import random

from dev.verify.fuzz.target import Target
from stream_runtime.records import Record
from tests.support.joinery.join_checks import Case, check_join, random_case
from tests.support.joinery.route_checks import JOINS, check_routes, random_value, router_of

_CASES = 128
_LENGTH = 2  # bytes of a length


def route() -> Target:
    """A change of an input, after a byte that chooses the join."""
    routers = [router_of(join) for join in JOINS]

    def run(data: bytes) -> bool:
        return check_routes(routers[data[0] % len(routers)], [data[1:]]) if data else False

    seeds = [bytes((number,)) + random_value(random.Random(number)) for number in range(_CASES)]
    return Target(run, seeds)


def join() -> Target:
    """Messages of an internal topic, after a byte that chooses the join. Each key and value is behind its length."""
    cases = [random_case(random.Random(number), most_changes=12) for number in range(_CASES)]

    def run(data: bytes) -> bool:
        if not data:
            return False
        case = Case(cases[data[0] % _CASES].rule, _records(data[1:]))
        return check_join(random.Random(len(data)), case) > 0

    return Target(run, [bytes((number,)) + _joined(case) for number, case in enumerate(cases)])


def _joined(case: Case) -> bytes:
    parts = [part for record in case.records for part in (record.key, record.value)]
    return b"".join(len(part).to_bytes(_LENGTH) + part for part in parts)


def _records(data: bytes) -> list[Record]:
    parts, at = [], 0
    while at < len(data):
        end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH])
        parts.append(data[at + _LENGTH : end])
        at = end
    return [
        Record(key, value, number, 0) for number, (key, value) in enumerate(zip(parts[::2], parts[1::2], strict=False))
    ]
