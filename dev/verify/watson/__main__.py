"""`make verify WHAT=watson`: Watson in headless Chromium (Debian's package `chromium`).

From the front page to a field's meaning: by mouse, by keyboard, and by links alone, in at most five clicks and a
minute. axe-core finds nothing serious or critical on any page, in light and dark, on a desk and on a phone. No page
tries what its Content-Security-Policy forbids. Suggestions never hide what has the focus. Pictures for the
docs go to docs/images.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cdc_common.program.cli import reported_errors
from dev.verify.browser.visitor import BLOCKING, DESK, IMAGES, PHONE, SCHEMES, Visitor, running_browser
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue
from tests.support.schematizer import watson_data
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.watson_data import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

MEANING = "What the customer pays, value added tax included, in euros."
MAX_CLICKS, MAX_SECONDS = 5, 60
PAGES = (
    "/",
    f"/namespaces/{NAMESPACE}",
    f"/sources/{NAMESPACE}/orders",
    f"/sources/{NAMESPACE}/orders/fields/total",
    f"/sources/{NAMESPACE}/orders/history",
    "/topics",
    f"/topics/{NAMESPACE}.orders",
    f"/topics/{NAMESPACE}.stock",
    f"/sources/{NAMESPACE}/stock",
    "/schemas/3",
    "/data-targets",
    "/data-targets/warehouse",
    "/clients",
    "/tags",
    "/tags/finance",
    "/unused?days=0",
    "/api",
    "/api/topics_topics_get",
    "/search?q=customer",
    "/search?q=custmer",
    "/nowhere",
)
PICTURES = (
    ("watson-front", "/", DESK, "light"),
    ("watson-source", f"/sources/{NAMESPACE}/orders", DESK, "light"),
    ("watson-field", f"/sources/{NAMESPACE}/orders/fields/total", DESK, "dark"),
    ("watson-history", f"/sources/{NAMESPACE}/orders/history", DESK, "light"),
    ("watson-phone", f"/sources/{NAMESPACE}/orders", PHONE, "dark"),
)


@contextmanager
def running_registry() -> Iterator[str]:
    """The address of Watson over a catalogue to look at."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "registry.db")
        database = Database(f"sqlite:///{file}")
        watson_data.fill(Store(database, Mirror("pii-")), Catalogue(database, Rules("pii-")))
        database.close()
        registry = Registry(file).start()
        try:
            yield f"{registry.url}/watson"
        finally:
            registry.stop()


def find_by_mouse(visitor: Visitor) -> None:
    visitor.open("/")
    visitor.click("#q")
    visitor.page.keyboard.type("tax")
    visitor.click("#suggestions a:has-text('total')")


def find_by_keyboard(visitor: Visitor) -> None:
    """No click: the search box and the result by Tab."""
    visitor.open("/")
    for _ in range(3):  # skip link, name, search box
        visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate("document.activeElement.id") == "q"
    visitor.page.keyboard.type("tax")
    visitor.page.wait_for_selector("#suggestions a")
    for _ in range(2):  # the button, the first result
        visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Enter")


def find_by_links(visitor: Visitor) -> None:
    visitor.open("/")
    visitor.click(f"main a:has-text('{NAMESPACE}')")
    visitor.click("main table a:has-text('orders')")
    visitor.click("main table a:has-text('total')")


def check_journeys(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    for journey in (find_by_mouse, find_by_keyboard, find_by_links):
        for size in (DESK, PHONE):
            visitor, started = Visitor(browser, root, size, "light"), time.monotonic()
            journey(visitor)
            visitor.page.wait_for_selector(f"main p.doc:has-text('{MEANING}')")
            seconds = time.monotonic() - started
            visitor.close()
            assert visitor.clicks <= MAX_CLICKS
            assert seconds < MAX_SECONDS
            click.echo(f"{journey.__name__} at {size['width']} px: {visitor.clicks} clicks, {seconds:.1f} s")


def check_writing(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    """Forms work in a browser, as its headers say where they come from."""
    visitor = Visitor(browser, root, DESK, "light")
    visitor.open(f"/sources/{NAMESPACE}/stock/fields/price")
    visitor.click("summary:has-text('Edit docs')")
    visitor.page.fill("#edit-doc", "Price of one piece, in euros.")
    visitor.click("details[open] button:has-text('Save')")
    visitor.page.wait_for_selector("p.doc:has-text('Price of one piece')")
    visitor.close()


def check_suggestions_leave(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    """They cover the page: with the focus they go, so that it is seen, and with Escape."""
    visitor = Visitor(browser, root, DESK, "light")
    visitor.open("/")
    visitor.page.fill("#q", "customer")
    visitor.page.wait_for_selector("#suggestions a")
    for _ in range(2 + visitor.page.locator("#suggestions a").count()):  # the button, the results, what comes next
        visitor.page.keyboard.press("Tab")
    assert not visitor.page.evaluate("document.activeElement.closest('[role=search]')")
    assert not visitor.page.is_visible("#suggestions")
    visitor.page.focus("#q")
    assert visitor.page.is_visible("#suggestions")
    visitor.page.keyboard.press("Escape")
    visitor.page.wait_for_selector("#suggestions", state="hidden")
    visitor.close()


def check_pages(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    """axe on each page; and no page scrolls sideways."""
    problems: list[str] = []
    for scheme in SCHEMES:
        for size in (DESK, PHONE):
            visitor = Visitor(browser, root, size, scheme, may_be_missing=True)  # /nowhere
            for path in PAGES:
                visitor.open(path)
                for summary in visitor.page.query_selector_all("details > summary"):
                    summary.click()
                problems += visitor.problems(path)
            visitor.open("/")
            visitor.page.fill("#q", "customer")
            visitor.page.wait_for_selector("#suggestions a")
            problems += visitor.problems("suggestions")
            visitor.close()
    assert not problems, "\n".join(problems)
    click.echo(f"axe: nothing {' or '.join(BLOCKING)} on {len(PAGES) + 1} pages, in 2 schemes and 2 widths")


def take_pictures(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    for name, path, size, scheme in PICTURES:
        visitor = Visitor(browser, root, size, scheme)
        visitor.open(path)
        visitor.take_picture(name)
        visitor.close()
    visitor = Visitor(browser, root, DESK, "light")
    visitor.open("/")
    visitor.page.fill("#q", "customer")
    visitor.page.wait_for_selector("#suggestions a")
    visitor.take_picture("watson-search")
    visitor.close()


@click.command()
def main() -> None:
    """Fails if a field's meaning is hard to find, or a page hard to use."""
    started = time.monotonic()
    with reported_errors(), running_registry() as root, running_browser() as browser:
        check_journeys(browser, root)
        check_pages(browser, root)
        take_pictures(browser, root)
        check_writing(browser, root)
        check_suggestions_leave(browser, root)
    click.echo(f"Pictures are in {IMAGES}. {time.monotonic() - started:.0f} s")
    sys.exit(0)


if __name__ == "__main__":
    main()
