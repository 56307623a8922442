"""What `info` and `verify` print for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassandra_commitlog.facts import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LABEL = 13


def info_text(facts: Mapping[str, Any]) -> str:
    """One segment of facts_json, as lines."""
    return "\n".join([facts["segment"], *_lines(facts), *_tables(facts["tables"]), *_problems(facts)])


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    written_by = f"written by Cassandra {facts['written_by']}" if facts["written_by"] else "not known to this program"
    yield _line("version", f"{facts['version']}, {written_by}; messaging version {facts['messaging_version']}")
    yield _line("id", f"{facts['id']}: counted up from the milliseconds of the node's start, {facts['id_time']}")
    yield _line("compression", facts["compression"] or "none")
    key = f", key {facts['key_alias']}" if facts["encryption"] else ""
    yield _line("encryption", (facts["encryption"] or "none") + key)
    yield _line("size", f"{facts['size']:,} bytes")
    yield _line("_cdc.idx", facts["index"] or "none")
    yield _line("sections", f"{facts['sections']:,}")
    unknown = f", {facts['unknown']:,} of them of tables or columns not known" if facts["unknown"] else ""
    yield _line("mutations", f"{facts['entries']:,}{unknown}")
    first, last = facts["min_timestamp"], facts["max_timestamp"]
    yield _line("written", "" if first is None else f"{_moment(first)} to {_moment(last)}")
    yield _line("ends", f"{facts['ending']['kind']} at {facts['ending']['position']:,}")


def _moment(microseconds: int) -> str:
    return moment(microseconds) or f"{microseconds} µs"


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}{text}".rstrip()


def _tables(tables: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    if not tables:
        return
    width = max(len(name) for name in tables)
    yield f"  {'table':<{width}}  {'mutations':>10}  {'bytes':>12}"
    for name, table in tables.items():
        yield f"  {name:<{width}}  {table['mutations']:>10,}  {table['bytes']:>12,}"


def _problems(facts: Mapping[str, Any]) -> Iterator[str]:
    for problem in facts["problems"]:
        yield f"  problem at {problem['position']}: {problem['reason']}"
    if facts["more_problems"]:
        yield f"  and {facts['more_problems']:,} more"
