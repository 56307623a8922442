"""The diagrams of the docs: drawn from their sources, readable, and with their text inside the boxes."""

from __future__ import annotations

import tomllib
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from dev.tools.diagrams import CHARACTER, LANE, PICTURES, STYLE, Box, draw, sources

if TYPE_CHECKING:
    from pathlib import Path

SMALL = 6.4  # px of a character of 12 px
ALL = [pytest.param(source, id=source.stem) for source in sources()]


def read(source: Path) -> dict[str, Any]:
    return tomllib.loads(source.read_text(encoding="utf-8"))


@pytest.mark.parametrize("source", ALL)
def test_the_picture_is_fresh(source: Path) -> None:
    """If not: python -m dev.tools.diagrams."""
    assert (PICTURES / f"{source.stem}.svg").read_text(encoding="utf-8") == draw(read(source)) + "\n"


@pytest.mark.parametrize("source", ALL)
def test_a_picture_stands_alone(source: Path) -> None:
    """An image may load nothing; it has a title for those who hear it."""
    picture = ET.fromstring(draw(read(source)))  # noqa: S314 - the project's own
    names = {element.tag.partition("}")[2] for element in picture.iter()}
    assert names <= {"svg", "title", "defs", "style", "rect", "text", "path", "line"}
    assert "title" in names
    assert "url(" not in STYLE


@pytest.mark.parametrize("source", ALL)
def test_text_fits(source: Path) -> None:
    given = read(source)
    boxes = [Box.read(entry) for entry in given.get("box", ())]
    for box in boxes:
        assert len(box.title) * CHARACTER <= box.width - 8, box.title
        assert all(len(line) * SMALL <= box.width - 8 for line in box.text), box.text
    for step in given.get("step", ()):
        lanes = abs(step["from"] - step["to"]) if "from" in step else 2
        for text in (step["text"], step.get("only", "")):
            assert len(text) * SMALL <= lanes * LANE - 10, text


@pytest.mark.parametrize("source", ALL)
def test_boxes_lie_inside_or_beside_each_other(source: Path) -> None:
    boxes = [Box.read(entry) for entry in read(source).get("box", ())]
    for one, other in combinations(boxes, 2):
        apart = (
            one.x + one.width <= other.x
            or other.x + other.width <= one.x
            or one.y + one.height <= other.y
            or other.y + other.height <= one.y
        )
        frame, inner = (one, other) if one.kind == "frame" else (other, one)
        inside = (
            frame.kind == "frame"
            and frame.x < inner.x
            and inner.x + inner.width < frame.x + frame.width
            and frame.y < inner.y
            and inner.y + inner.height < frame.y + frame.height
        )
        assert apart or inside, (one.title, other.title)


def test_an_unknown_box_is_an_error() -> None:
    source = read(sources(["path"])[0])
    source["arrow"].append({"from": "nowhere.left", "to": "raw.left"})
    with pytest.raises(KeyError, match="nowhere"):
        draw(source)
