"""Random lives of a table: changes of its rows and schemas, loads, failures at each step, and a second loader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from tests.support.warehouse.scene import SCHEMAS, Row, Sent, Shop, Warehouse
from warehouse.fault_points import WarehousePoint
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, MARKED, Form
from warehouse.targets.connection import LoadTakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

Step = tuple[str, Any]
_STEPS_OF_A_SEED = 25
_KEYS = st.integers(0, 5)
_IDS = st.sampled_from([schema_id for schema_id in SCHEMAS if schema_id >= 10])
_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", '"', "\n", "\\N", "a,b", "\r\n", "\\", "NULL", "𝄞"]
)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(
        st.just("put"),
        st.tuples(
            _KEYS,
            _IDS,
            st.none() | _TEXTS,
            st.none() | st.integers(-(2**31), 2**31 - 1),
            st.none() | st.lists(_TEXTS, max_size=3),
        ),
    ),
    st.tuples(st.just("delete"), st.tuples(_KEYS, _IDS)),
    st.tuples(st.just("load"), st.integers(1, 9)),
    st.tuples(st.just("fail"), st.tuples(st.sampled_from(WarehousePoint), st.integers(1, 3), st.integers(1, 9))),
    st.tuples(st.just("race"), st.integers(1, 9)),
)


def random_steps(random: Random) -> list[Step]:
    """Changes, loads, failures, and loads beside each other."""
    steps: list[Step] = []
    for number in range(_STEPS_OF_A_SEED):
        key, most = random.randrange(4), random.randrange(1, 9)
        match random.randrange(9):
            case 0 | 1 | 2 | 3:
                steps.append(("put", (key, random.choice((10, 11)), f"Ada {number}", number, None)))
            case 4:
                steps.append(("delete", (key, 11)))
            case 5 | 6:
                steps.append(("load", most))
            case 7:
                steps.append(("fail", (random.choice(list(WarehousePoint)), 1, most)))
            case _:
                steps.append(("race", most))
    return steps


def play(shop: Shop, warehouse: Warehouse, steps: list[Step]) -> None:
    """The table equals the fold at its offsets after each step, and the whole of it at the end."""
    acts: dict[str, Callable[[Any], None]] = {
        "put": lambda values: _put(shop, *values),
        "delete": lambda values: shop.delete(*values),
        "load": warehouse.run,
        "fail": lambda values: _fail(warehouse, *values),
        "race": lambda most: _race(warehouse, most),
    }
    try:
        for act, value in steps:
            acts[act](value)
            if act not in {"put", "delete"}:
                check_equal(shop, warehouse)
        warehouse.run()
        check_equal(shop, warehouse)
        loaded = {partition: warehouse.offsets().get(partition, 0) for partition in range(shop.topic.shape.partitions)}
        assert loaded == dict(enumerate(shop.topic.ends)) or not any(row for part in shop.changes for _, row in part)
    finally:
        fault_points.armed = None
        warehouse.close()


def check_equal(shop: Shop, warehouse: Warehouse) -> None:
    """The table equals the fold of the topic at exactly the offsets that it is at."""
    own, wanted = _WANTED[warehouse.form](shop, warehouse.offsets())
    found = warehouse.rows(*own)
    names = set().union(*found) - set(own) if found else set()
    assert sorted(map(_plain, found)) == sorted(
        _plain({**dict(zip(own, values, strict=True)), **{name: _field(row, name) for name in names}})
        for *values, row in wanted
    )
    warehouse.loader.connection.release()


def _wanted_rows(shop: Shop, offsets: Mapping[int, int]) -> tuple[list[str], list[tuple[Any, ...]]]:
    return [], [(row,) for row in shop.rows_at(offsets).values()]


def _wanted_marked(shop: Shop, offsets: Mapping[int, int]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The newest image of each row, and when it was deleted."""
    last = {
        sent.key: sent
        for partition, messages in enumerate(shop.sent)
        for sent in messages[: offsets.get(partition, 0)]
        if sent is not None
    }
    own = ["_sequence", _micros("_deleted_at")]
    return own, [(sent.sequence, sent.time_us if sent.op == "d" else None, sent.image) for sent in last.values()]


def _wanted_changes(shop: Shop, offsets: Mapping[int, int]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Each change once, at its place."""
    own = ["_partition", "_offset", "_op", "_sequence", _micros("_changed_at")]
    return own, [
        (partition, offset, sent.op, sent.sequence, sent.time_us, sent.image)
        for partition, messages in enumerate(shop.sent)
        for offset, sent in enumerate(messages[: offsets.get(partition, 0)])
        if sent is not None
    ]


def _wanted_history(shop: Shop, offsets: Mapping[int, int]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Each version of each row: it begins no earlier than the one before it, and ends where the next change begins."""
    own = ["_sequence", _micros("valid_from"), _micros("valid_to"), "is_current"]
    lives: dict[int, list[Sent]] = {}
    for partition, messages in enumerate(shop.sent):
        for sent in messages[: offsets.get(partition, 0)]:
            if sent is not None:
                lives.setdefault(sent.key, []).append(sent)
    wanted: list[tuple[Any, ...]] = []
    for life in lives.values():
        begins = [max(sent.time_us for sent in life[: number + 1]) for number in range(len(life))]
        for sent, start, end in zip(life, begins, [*begins[1:], None], strict=True):
            if sent.op != "d":
                wanted.append((sent.sequence, start, end, end is None, sent.image))
    return own, wanted


def _micros(name: str) -> str:
    """A time in µs since 1970, in both warehouses."""
    return f"CAST(EXTRACT(EPOCH FROM {name}) * 1000000 AS BIGINT)"


_WANTED: dict[Form, Callable[[Shop, Mapping[int, int]], tuple[list[str], list[tuple[Any, ...]]]]] = {
    CURRENT: _wanted_rows,
    MARKED: _wanted_marked,
    CHANGES: _wanted_changes,
    HISTORY: _wanted_history,
}


def _field(row: Row, name: str) -> Any:  # noqa: ANN401 - a value
    """The value of a field; `title` is what `name` is called now."""
    if name == "title":
        return row.get("title", row.get("name"))
    return row.get(name)


def _plain(row: Row) -> str:
    """A row as text. PostgreSQL has lists as JSON, which psycopg reads."""
    return json.dumps(row, sort_keys=True)


def _put(shop: Shop, key: int, schema_id: int, text: str | None, number: int | None, tags: list[str] | None) -> None:
    values = {"name": text, "title": text, "qty": number, "tags": tags}
    fields = SCHEMAS[schema_id]["fields"][1]["type"][1]["fields"]
    names = [field["name"] for field in fields if field["name"] != "id"]
    shop.put(key, schema_id, **{name: values[name] for name in names})


def _fail(warehouse: Warehouse, point: WarehousePoint, nth: int, most: int) -> None:
    fault_points.reached.clear()
    fault_points.armed = Fault(point, nth, "raise")
    try:
        warehouse.run(most)
    except InjectedFaultError:
        pass
    finally:
        fault_points.armed = None


def _race(warehouse: Warehouse, most: int) -> None:
    """Two loaders that have read the same state take turns."""
    first, second = warehouse.open(), warehouse.open()
    try:
        for task in (first, second, first):
            warehouse.take(task, most)
        for task in (second, first):
            task.load_due()
            task.close()
    except LoadTakenError:
        pass
    finally:
        first.close()
        second.close()
