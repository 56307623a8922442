"""ClickHouse in a process of its own (chdb) reads every type in the default forms."""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest

from cdc_common.messages.avro.type_forms import DEFAULT_FORMS
from tests.support import consumers
from tests.support.consumers import tool_chains
from tests.support.consumers.wide_table import NAMES, envelopes, wide_messages

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]

DECLARATION = Path(consumers.__file__).parent / "declarations" / "clickhouse.sql"
QUERY = "import chdb, sys; sys.stdout.write(str(chdb.query(sys.argv[1], 'JSONEachRow')))"


def test_every_type_is_read(tmp_path: Path) -> None:
    messages = wide_messages(DEFAULT_FORMS)
    row = json.loads(messages[0].value_schema)["fields"][0]["type"][1]
    afters = [envelope["after"] for envelope in envelopes(messages) if envelope["after"] is not None]
    file = tmp_path / "rows.avro"
    with file.open("wb") as opened:
        fastavro.writer(opened, fastavro.parse_schema(row), afters)
    columns = ", ".join(f"hex({name}) AS {name}" if of.name == "blob" else name for name, of in NAMES.items())
    query = DECLARATION.read_text().format(columns=f"id, {columns}", file=file)
    packages = tool_chains.packages("clickhouse", tool_chains.CLICKHOUSE)
    found = tool_chains.run([sys.executable, "-c", QUERY, query], PYTHONPATH=str(packages))
    rows = [json.loads(line) for line in found.splitlines()]
    arrays = {name for name, value in rows[0].items() if isinstance(value, list)}
    assert len(rows) == len(afters)
    for shown, after in zip(rows, afters, strict=True):
        for name, value in after.items():
            expected = [] if value is None and name in arrays else plain(value)  # an array has no null there
            assert plain(shown[name]) == expected, NAMES.get(name)


def plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one for each kind of value
    match value:
        case list():
            return [plain(item) for item in value]
        case bytes():
            return value.hex().upper()
        case UUID():
            return str(value)
        case dt.datetime():
            return f"{value:%m-%d %H:%M:%S}".join((f"{value.year:04}-", f".{value.microsecond // 1000:03}"))
        case dt.date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return {"inf": "inf", "-inf": "-inf", "nan": "nan"}[repr(value)]
    return value
