"""Recordings of terminals as an animated picture; docs/images/demo.svg is made from the recordings beside it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from dev.tools.terminal_svg import LONGEST_PAUSE, PANES, PICTURE, Cast, animate, read_cast, read_casts, write_cast

MOST_BYTES = 300_000  # a page shows it at its top
SHELL = Cast(30, 2, "shell", [(0.0, "> "), (1.0, "a"), (1.05, "b<"), (1.5, "\r\n\x1b[1;32mdone\x1b[0m & more")])
OTHER = Cast(30, 1, "other", [(60.0, "at last")])


def texts(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(picture).iter() if element.tag.endswith("}text")]  # noqa: S314


def test_a_cast_survives() -> None:
    assert read_cast(write_cast(SHELL)) == SHELL
    with pytest.raises(ValueError, match="1"):
        read_cast('{"version": 1, "width": 1, "height": 1, "title": ""}')


def test_lines_that_were_shown() -> None:
    assert texts(animate([SHELL, OTHER])) == ["shell", "other", ">", "> ab<", "done& more", "at last"]
    assert '<tspan x="14.0" fill="#7ee787" class="b">done</tspan>' in animate([SHELL])


def test_long_pauses_are_cut() -> None:
    [length] = {float(found) for found in re.findall(r" ([\d.]+)s step-end", animate([SHELL, OTHER]))}
    assert 1.5 + LONGEST_PAUSE < length < 10


def test_a_line_is_hidden_when_another_one_takes_its_place() -> None:
    picture = animate([SHELL])
    first = re.search(r'<text class="(\w+)"[^>]*><tspan[^>]*>&gt;</tspan>', picture)
    assert first
    frames = re.search(rf"@keyframes {first[1]}{{(.*)}}", picture)
    assert frames
    assert re.fullmatch(r"0.00%{visibility:visible}[\d.]+%{visibility:hidden}", frames[1])


def test_without_motion_the_last_screen_stays() -> None:
    still = animate([SHELL]).partition("reduced-motion: reduce){")[2].splitlines()[0]
    assert still.count("visibility:visible") == 2  # the prompt's last text, and the line after it


def test_the_picture_is_fresh_and_small() -> None:
    """If not: python -m dev.tools.terminal_svg."""
    assert PICTURE.read_text(encoding="utf-8") == animate(read_casts())
    assert PICTURE.stat().st_size < MOST_BYTES
    assert "expired" in "".join(data for _, data in read_casts(PANES[1:])[0].events)
