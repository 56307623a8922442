"""The output of `info` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassandra_storage.commands.json_lines import iso_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LABEL = 13


def info_text(summary: Mapping[str, Any]) -> str:
    """The lines of one segment, from summary_json."""
    return "\n".join([summary["segment"], *_lines(summary), *_tables(summary["tables"]), *_problems(summary)])


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    written_by = f"written by Cassandra {summary['written_by']}" if summary["written_by"] else "unknown to this program"
    yield _line("version", f"{summary['version']}, {written_by}; messaging version {summary['messaging_version']}")
    yield _line("id", f"{summary['id']}: the node's start time in ms, counted up, {summary['id_time']}")
    yield _line("compression", summary["compression"] or "none")
    key = f", key {summary['key_alias']}" if summary["encryption"] else ""
    yield _line("encryption", (summary["encryption"] or "none") + key)
    yield _line("size", f"{summary['size']:,} bytes")
    yield _line("_cdc.idx", summary["index"] or "none")
    yield _line("sections", f"{summary['sections']:,}")
    unknown = f", {summary['unknown']:,} of them of unknown tables or columns" if summary["unknown"] else ""
    yield _line("mutations", f"{summary['entries']:,}{unknown}")
    first, last = summary["min_timestamp"], summary["max_timestamp"]
    yield _line("written", "" if first is None else f"{_moment(first)} to {_moment(last)}")
    yield _line("ends", f"{summary['ending']['kind']} at {summary['ending']['position']:,}")


def _moment(microseconds: int) -> str:
    return iso_time(microseconds) or f"{microseconds} µs"


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}{text}".rstrip()


def _tables(tables: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    if not tables:
        return
    width = max(len(name) for name in tables)
    yield f"  {'table':<{width}}  {'mutations':>10}  {'bytes':>12}"
    for name, table in tables.items():
        yield f"  {name:<{width}}  {table['mutations']:>10,}  {table['bytes']:>12,}"


def _problems(summary: Mapping[str, Any]) -> Iterator[str]:
    for problem in summary["problems"]:
        yield f"  problem at {problem['position']}: {problem['reason']}"
    if summary["more_problems"]:
        yield f"  and {summary['more_problems']:,} more"
