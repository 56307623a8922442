"""Draws recordings of terminals as one animated SVG: `python -m dev.tools.terminal_svg`.

A recording is an asciicast (version 2). Several recordings of one time are shown one below the other. pyte plays them;
each line of text that was on a screen becomes an element that is visible for as long as it was there. The picture needs
no script, so that it moves where a page shows it as an image. Who prefers reduced motion sees the last screen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

import pyte

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyte.screens import Char

CASTS = project_root() / "docs" / "diagrams"
PICTURE = project_root() / "docs" / "images" / "demo.svg"
PANES = ("demo-cqlsh", "demo-follow")
FRAME_SECONDS = 0.1  # what changes within one is one frame
LONGEST_PAUSE = 2.0  # seconds; a longer one in the recording is cut to this
END_SECONDS = 4.0  # how long the last screen stays
WIDTH, HEIGHT, FONT = 7.8, 18, 13  # px: a character, a line, the font
PADDING, TITLE = 14, 30
COLOURS = {
    "black": "#484f58",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "white": "#e6edf3",
    "default": "#e6edf3",
}
STYLE = """
text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; white-space: pre;
  font-size: 13px; fill: #e6edf3; }
.t { fill: #9da7b3; } .b { font-weight: 700; } .d { opacity: 0.65; }
"""


class Event(NamedTuple):
    """Output of a terminal."""

    # The seconds since the recording began.
    seconds: float
    # The number of the terminal.
    pane: int
    # The text with its control sequences.
    data: str


class Cast(NamedTuple):
    """The recording of one terminal."""

    # The width in characters.
    columns: int
    # The height in lines.
    rows: int
    # The title.
    title: str
    # The output: the second of the recording, and the text.
    events: list[tuple[float, str]]


@dataclass
class Line:
    """A line of a screen for as long as it is shown."""

    # The number of the line. It counts over all panes.
    row: int
    # The SVG elements of the text.
    spans: str
    # The second at which it appears.
    start: float
    # The second at which it goes away.
    end: float = field(default=0.0)


def read_cast(text: str) -> Cast:
    """ValueError or KeyError if it is no asciicast of version 2."""
    header, *lines = (json.loads(line) for line in text.splitlines())
    if header["version"] != 2:
        raise ValueError(header["version"])
    return Cast(
        header["width"], header["height"], header["title"], [(at, data) for at, kind, data in lines if kind == "o"]
    )


def write_cast(cast: Cast) -> str:
    header = {"version": 2, "width": cast.columns, "height": cast.rows, "title": cast.title}
    lines = [header, *([round(at, 3), "o", data] for at, data in cast.events)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def animate(casts: Sequence[Cast]) -> str:
    """The SVG."""
    lines, seconds = _play(casts)
    total = seconds + END_SECONDS
    width = PADDING * 2 + WIDTH * max(cast.columns for cast in casts)
    tops = _tops(casts)
    height = tops[-1] + casts[-1].rows * HEIGHT + PADDING
    shown = [_element(line, casts, tops) for line in lines]
    times = sorted({(line.start, line.end) for line in lines})
    names = {time: f"k{number}" for number, time in enumerate(times)}
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">',
        f"<title>{escape(', '.join(cast.title for cast in casts))}</title>",
        f"<style>{STYLE}{_keyframes(names, total, seconds)}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117" stroke="#57606a"/>',
    ]
    for cast, top in zip(casts, tops, strict=True):
        made.append(f'<rect y="{top - TITLE + 6}" width="{width:.0f}" height="{TITLE - 10}" fill="#21262d"/>')
        made.append(f'<text class="t" x="{PADDING}" y="{top - 10}">{escape(cast.title)}</text>')
    made += [
        f'<text class="{names[line.start, line.end]}" y="{y}">{spans}</text>'
        for line, (y, spans) in zip(lines, shown, strict=True)
    ]
    return "\n".join([*made, "</svg>"]) + "\n"


def _tops(casts: Sequence[Cast]) -> list[int]:
    """Return the position of the first line of each pane, in px."""
    tops, y = [], 0
    for cast in casts:
        y += TITLE
        tops.append(y)
        y += cast.rows * HEIGHT + 8
    return tops


def _element(line: Line, casts: Sequence[Cast], tops: Sequence[int]) -> tuple[int, str]:
    row, pane = line.row, 0
    while row >= casts[pane].rows:
        row -= casts[pane].rows
        pane += 1
    return tops[pane] + row * HEIGHT + FONT, line.spans


def _keyframes(names: dict[tuple[float, float], str], total: float, seconds: float) -> str:
    """A line that is there from the beginning to the end needs no animation."""
    made, hidden = [], []
    for (start, end), name in names.items():
        if start == 0 and end >= total:
            continue
        first, last = 100 * start / total, 100 * end / total
        before = "0%{visibility:hidden}" if start else ""
        after = f"{last:.2f}%{{visibility:hidden}}" if end < total else ""
        made.append(f"@keyframes {name}{{{before}{first:.2f}%{{visibility:visible}}{after}}}")
        made.append(f".{name}{{visibility:hidden;animation:{name} {total:.1f}s step-end infinite}}")
        hidden.append(f".{name}{{animation:none{';visibility:visible' if end > seconds else ''}}}")
    return "\n".join([*made, f"@media (prefers-reduced-motion: reduce){{{''.join(hidden)}}}"])


def _play(casts: Sequence[Cast]) -> tuple[list[Line], float]:
    """Every line that was shown, and how long the recording lasts once long pauses are cut."""
    screens = [pyte.Screen(cast.columns, cast.rows) for cast in casts]
    streams = [pyte.Stream(screen) for screen in screens]
    shown: dict[int, Line] = {}
    lines: list[Line] = []
    now = 0.0
    for now, frame in _frames(casts):
        for event in frame:
            streams[event.pane].feed(event.data)
        for row, spans in enumerate(text for screen in screens for text in _rows(screen)):
            before = shown.get(row)
            if before is not None and before.spans == spans:
                continue
            if before is not None:
                before.end = now
                lines.append(before)
            shown[row] = Line(row, spans, now)
    for line in shown.values():
        line.end = now + END_SECONDS
    return [line for line in [*lines, *shown.values()] if line.spans], now


def _frames(casts: Sequence[Cast]) -> Iterator[tuple[float, list[Event]]]:
    """Events that belong together, with the second at which they are shown."""
    written = (Event(at, pane, data) for pane, cast in enumerate(casts) for at, data in cast.events)
    events = sorted(written, key=lambda event: event.seconds)
    now, last = 0.0, 0.0
    frame: list[Event] = []
    for event in events:
        if event.seconds - last >= FRAME_SECONDS:
            if frame:
                yield round(now, 2), frame
            frame = []
            now += min(event.seconds - last, LONGEST_PAUSE)
            last = event.seconds
        frame.append(event)
    yield round(now, 2), frame


def _rows(screen: pyte.Screen) -> Iterator[str]:
    """Each line of the screen as spans of one style; empty for a line without text."""
    for row in range(screen.lines):
        cells = [screen.buffer[row][column] for column in range(screen.columns)]
        yield "".join(_spans(cells))


def _spans(cells: Sequence[Char]) -> Iterator[str]:
    start = 0
    while start < len(cells):
        end = start
        while end < len(cells) and _style(cells[end]) == _style(cells[start]):
            end += 1
        text = "".join(cell.data for cell in cells[start:end])
        if text.strip():
            lead = len(text) - len(text.lstrip())
            x = PADDING + (start + lead) * WIDTH
            yield f'<tspan x="{x:.1f}"{_style(cells[start])}>{escape(text.strip())}</tspan>'
        start = end


def _style(cell: Char) -> str:
    """Attributes of a tspan. pyte gives a colour's name, or its six digits."""
    colour = COLOURS.get(cell.fg.removeprefix("bright"), f"#{cell.fg}")
    fill = "" if colour == COLOURS["default"] else f' fill="{colour}"'
    return fill + (' class="b"' if cell.bold else "")


def read_casts(names: Iterable[str] = PANES, folder: Path = CASTS) -> list[Cast]:
    return [read_cast((folder / f"{name}.cast").read_text(encoding="utf-8")) for name in names]


if __name__ == "__main__":
    PICTURE.write_text(animate(read_casts()), encoding="utf-8")
