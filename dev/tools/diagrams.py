"""Draws docs/images/NAME.svg from docs/diagrams/NAME.toml: `python -m dev.tools.diagrams [NAME ...]`.

A source either places boxes and joins them with arrows, or lists the steps between lanes from top to bottom. The
pictures need no font but the reader's own, and follow the light or dark scheme of the system.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import drawsvg

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SOURCES = project_root() / "docs" / "diagrams"
PICTURES = project_root() / "docs" / "images"
STYLE = """
svg { --back: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #6e7781; --mark: #9a3412;
  --program: #dbeafe; --topic: #dcfce7; --store: #f1f3f5; --edge: #8c959f; }
@media (prefers-color-scheme: dark) {
  svg { --back: #161b22; --ink: #e6edf3; --soft: #9da7b3; --line: #8b949e; --mark: #fdba74;
    --program: #1e3a5f; --topic: #14432a; --store: #2d333b; --edge: #57606a; } }
text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px; fill: var(--ink); }
.back { fill: var(--back); stroke: var(--edge); }
.title { font-weight: 600; }
.soft { fill: var(--soft); font-size: 12px; }
.label { fill: var(--soft); font-size: 12px; stroke: var(--back); stroke-width: 4px; paint-order: stroke; }
.strong { fill: var(--mark); font-weight: 600; }
.box { stroke: var(--edge); }
.program { fill: var(--program); } .topic { fill: var(--topic); } .store { fill: var(--store); }
.frame { fill: none; stroke: var(--edge); stroke-dasharray: 4 3; }
.line { stroke: var(--line); stroke-width: 1.5; fill: none; }
.dashed { stroke-dasharray: 5 4; }
.thick { stroke: var(--mark); stroke-width: 2.5; }
.lane { stroke: var(--edge); stroke-dasharray: 2 4; }
.band { fill: var(--store); stroke: var(--edge); }
.head { fill: var(--line); } .thick-head { fill: var(--mark); }
"""
CHARACTER = 6.9  # px of a character of 13 px, on average
LINE = 16
HEAD = 9  # px of an arrow's head
LANE, STEP, TOP, MARGIN = 245, 46, 62, 20


class Point(NamedTuple):
    """A point of the picture."""

    # The distance from the left edge, in px.
    x: float
    # The distance from the top edge, in px.
    y: float


@dataclass(frozen=True)
class Box:
    """A rectangle with a title and lines of text."""

    # The distance of its left side from the left edge, in px.
    x: float
    # The distance of its top from the top edge, in px.
    y: float
    # The width in px.
    width: float
    # The height in px.
    height: float
    # The class of its style.
    kind: str
    # The title.
    title: str
    # The lines below the title.
    text: tuple[str, ...]

    @classmethod
    def read(cls, given: dict[str, Any]) -> Box:
        (x, y), (width, height) = given["at"], given["size"]
        return cls(x, y, width, height, given["kind"], given["title"], tuple(given.get("text", ())))

    def anchor(self, side: str) -> Point:
        """`right`, or `right@0.3`: so far down (or to the right) of that side."""
        name, _, share = side.partition("@")
        part = float(share or 0.5)
        across, down = self.x + self.width * part, self.y + self.height * part
        return {
            "left": Point(self.x, down),
            "right": Point(self.x + self.width, down),
            "top": Point(across, self.y),
            "bottom": Point(across, self.y + self.height),
        }[name]


def draw(source: dict[str, Any]) -> str:
    """The picture as SVG. KeyError if the source lacks something, or names a box or side that is not there."""
    return _boxes(source) if "box" in source else _steps(source)


def _canvas(title: str, width: float, height: float) -> drawsvg.Drawing:
    picture = drawsvg.Drawing(width, height, id_prefix="d")
    picture.append_css(STYLE)
    picture.append_title(title)
    picture.append(drawsvg.Rectangle(0.5, 0.5, width - 1, height - 1, rx=8, class_="back"))
    picture.append(drawsvg.Text(title, None, MARGIN, 28, class_="title"))
    return picture


def _boxes(source: dict[str, Any]) -> str:
    picture = _canvas(source["title"], *source["size"])
    boxes = {given["id"]: Box.read(given) for given in source["box"]}
    for box in boxes.values():
        _box(picture, box)
    for arrow in source["arrow"]:
        ends = [arrow[at].partition(".")[::2] for at in ("from", "to")]
        start, end = (boxes[name].anchor(side) for name, side in ends)
        sides = [side.partition("@")[0] for _, side in ends]
        points = _route(start, end, sides, arrow)
        _arrow(picture, points, is_dashed=arrow.get("dashed", False), is_both=arrow.get("both", False))
        _label(picture, points, arrow.get("label", ""))
    return str(picture.as_svg())


def _box(picture: drawsvg.Drawing, box: Box) -> None:
    kind = box.kind if box.kind == "frame" else f"box {box.kind}"
    picture.append(drawsvg.Rectangle(box.x, box.y, box.width, box.height, rx=6, class_=kind))
    if box.kind == "frame":
        picture.append(drawsvg.Text(box.title, None, box.x + 12, box.y + 22, class_="soft"))
        return
    middle = box.x + box.width / 2
    y = box.y + box.height / 2 - len(box.text) * LINE / 2 + 5
    picture.append(drawsvg.Text(box.title, None, middle, y, text_anchor="middle", class_="title"))
    for number, line in enumerate(box.text, 1):
        picture.append(drawsvg.Text(line, None, middle, y + number * LINE, text_anchor="middle", class_="soft"))


def _route(start: Point, end: Point, sides: Sequence[str], arrow: dict[str, Any]) -> list[Point]:
    """Straight where that is possible; otherwise with one vertical piece: at x = `bend`, or `around` px beside."""
    if sides[0] in {"top", "bottom"}:
        return [start, end]
    if "around" in arrow:
        x = start.x + arrow["around"]
        return [start, Point(x, start.y), Point(x, end.y), end]
    if start.y == end.y:
        return [start, end]
    x = arrow.get("bend", (start.x + end.x) / 2)
    return [start, Point(x, start.y), Point(x, end.y), end]


def _arrow(
    picture: drawsvg.Drawing,
    points: Sequence[Point],
    *,
    is_dashed: bool = False,
    is_both: bool = False,
    is_strong: bool = False,
) -> None:
    line = drawsvg.Path(class_=f"line{' dashed' * is_dashed}{' thick' * is_strong}")
    line.M(*points[0])
    for point in points[1:]:
        line.L(*point)
    picture.append(line)
    _head(picture, points[-2], points[-1], is_strong=is_strong)
    if is_both:
        _head(picture, points[1], points[0], is_strong=is_strong)


def _head(picture: drawsvg.Drawing, before: Point, tip: Point, *, is_strong: bool) -> None:
    """A triangle at `tip`, for a line that comes along an axis, or nearly so."""
    half = HEAD / 2
    if abs(tip.x - before.x) >= abs(tip.y - before.y):
        back = tip.x - HEAD if tip.x > before.x else tip.x + HEAD
        corners = [tip, Point(back, tip.y - half), Point(back, tip.y + half)]
    else:
        back = tip.y - HEAD if tip.y > before.y else tip.y + HEAD
        corners = [tip, Point(tip.x - half, back), Point(tip.x + half, back)]
    flat = [number for corner in corners for number in corner]
    picture.append(drawsvg.Lines(*flat, close=True, class_="thick-head" if is_strong else "head"))


def _label(picture: drawsvg.Drawing, points: Sequence[Point], text: str) -> None:
    """Above the longest level piece of the line."""
    if text:
        start, end = max(pairwise(points), key=lambda pair: abs(pair[1].x - pair[0].x))
        x = (start.x + end.x) / 2
        picture.append(drawsvg.Text(text, None, x, start.y - 7, text_anchor="middle", class_="label"))


def _steps(source: dict[str, Any]) -> str:
    lanes, steps = source["lanes"], source["step"]
    bands = source.get("band", [])
    width = 2 * MARGIN + LANE * len(lanes)
    height = TOP + 40 + STEP * (len(steps) + len(bands)) + MARGIN
    picture = _canvas(source["title"], width, height)
    middles = [MARGIN + LANE * (number + 0.5) for number in range(len(lanes))]
    for middle, name in zip(middles, lanes, strict=True):
        picture.append(drawsvg.Line(middle, TOP + 12, middle, height - MARGIN, class_="lane"))
        _box(picture, Box(middle - LANE / 2 + 15, TOP - 20, LANE - 30, 32, "program", name, ()))
    y = TOP + 12.0
    for number, step in enumerate(steps, 1):
        for band in (one for one in bands if one.get("before") == number):
            y += STEP
            _band(picture, band["text"], y, width)
        y += STEP
        _step(picture, step, middles, y)
        for band in (one for one in bands if one.get("after") == number):
            y += STEP
            _band(picture, band["text"], y, width)
    return str(picture.as_svg())


def _step(picture: drawsvg.Drawing, step: dict[str, Any], middles: Sequence[float], y: float) -> None:
    is_strong = step.get("strong", False)
    if "at" in step:
        x = middles[step["at"]]
        half = len(step["text"]) * CHARACTER / 2 + 10
        picture.append(drawsvg.Rectangle(x - half, y - 22, 2 * half, 30, rx=6, class_="box store"))
        picture.append(drawsvg.Text(step["text"], None, x, y - 2, text_anchor="middle"))
        return
    start, end = (Point(middles[step[name]], y) for name in ("from", "to"))
    _arrow(picture, [start, end], is_dashed="only" in step, is_strong=is_strong)
    x = (start.x + end.x) / 2
    kind = "label strong" if is_strong else "label"
    picture.append(drawsvg.Text(step["text"], None, x, y - 7, text_anchor="middle", class_=kind))
    if "only" in step:
        picture.append(drawsvg.Text(step["only"], None, x, y + 14, text_anchor="middle", class_="label"))


def _band(picture: drawsvg.Drawing, text: str, y: float, width: float) -> None:
    picture.append(drawsvg.Rectangle(MARGIN, y - 24, width - 2 * MARGIN, 30, rx=6, class_="band"))
    picture.append(drawsvg.Text(text, None, width / 2, y - 4, text_anchor="middle"))


def sources(names: Sequence[str] = ()) -> list[Path]:
    """The sources of these names, or all."""
    return [SOURCES / f"{name}.toml" for name in names] or sorted(SOURCES.glob("*.toml"))


def main() -> int:
    for source in sources(sys.argv[1:]):
        picture = draw(tomllib.loads(source.read_text(encoding="utf-8")))
        (PICTURES / f"{source.stem}.svg").write_text(picture + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
