"""`make verify WHAT=watson`: Watson in headless Chromium (Debian's package `chromium`).

From the front page to a field's meaning: by mouse, by keyboard, and by links alone, in at most five clicks and a
minute. axe-core finds nothing serious or critical on any page, in light and dark, on a desk and on a phone. No page
tries what its Content-Security-Policy forbids. Pictures for the docs go to docs/images.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from cdc_program.cli import reported_errors
from local_stack.process.paths import project_root
from schematizer.catalogue.mirror import Mirror
from schematizer.catalogue.rules import Rules
from schematizer.catalogue.service import Catalogue
from schematizer.confluent.store import Store
from schematizer.model.database import Database
from tests.support.schematizer import watson_data
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.watson_data import NAMESPACE
from verify.spark_page.__main__ import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGES = project_root() / "docs" / "images"
MEANING = "What the customer pays, value added tax included, in euros."
MAX_CLICKS, MAX_SECONDS = 5, 60
MAX_PICTURE_BYTES = 150_000
DESK, PHONE = {"width": 1280, "height": 860}, {"width": 375, "height": 740}
SCHEMES = ("light", "dark")
BLOCKING = ("serious", "critical")
PAGES = (
    "/",
    f"/namespaces/{NAMESPACE}",
    f"/sources/{NAMESPACE}/orders",
    f"/sources/{NAMESPACE}/orders/fields/total",
    f"/sources/{NAMESPACE}/orders/history",
    "/topics",
    f"/topics/{NAMESPACE}.orders",
    "/schemas/3",
    "/data-targets",
    "/data-targets/warehouse",
    "/clients",
    "/tags",
    "/tags/finance",
    "/unused?days=0",
    "/search?q=customer",
    "/nowhere",
)
PICTURES = (
    ("watson-front", "/", DESK, "light"),
    ("watson-source", f"/sources/{NAMESPACE}/orders", DESK, "light"),
    ("watson-field", f"/sources/{NAMESPACE}/orders/fields/total", DESK, "dark"),
    ("watson-history", f"/sources/{NAMESPACE}/orders/history", DESK, "light"),
    ("watson-phone", f"/sources/{NAMESPACE}/orders", PHONE, "dark"),
)
# Without these Chromium asks its maker's servers at every start.
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
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


class Visitor:
    """A person with a browser: counts clicks, and notes what the browser complains of."""

    def __init__(self, browser: Any, root: str, size: dict[str, int], scheme: str) -> None:  # noqa: ANN401 - Playwright's
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.root = root
        self.clicks = 0
        self.complaints: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path: str) -> None:
        self.page.goto(self.root + path, wait_until="load")

    def click(self, selector: str) -> None:
        self.clicks += 1
        self.page.click(selector)

    def close(self) -> None:
        self.context.close()
        assert not self.complaints, self.complaints

    def _note(self, message: Any) -> None:  # noqa: ANN401 - as above
        is_expected = "status of 404" in message.text  # /nowhere
        if message.type in ("error", "warning") and not is_expected:
            self.complaints.append(message.text)


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


def check_pages(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    """axe on each page; and no page scrolls sideways."""
    axe, problems = Axe(), []
    for scheme in SCHEMES:
        for size in (DESK, PHONE):
            visitor = Visitor(browser, root, size, scheme)
            for path in PAGES:
                visitor.open(path)
                for summary in visitor.page.query_selector_all("details > summary"):
                    summary.click()
                where = f"{path} {scheme} {size['width']} px"
                width = visitor.page.evaluate("document.documentElement.scrollWidth")
                if width > size["width"]:
                    problems.append(f"{where}: {width} px wide")
                problems += [f"{where}: {each}" for each in violations(axe, visitor.page)]
            visitor.open("/")
            visitor.page.fill("#q", "customer")
            visitor.page.wait_for_selector("#suggestions a")
            problems += [f"suggestions {scheme} {size['width']} px: {each}" for each in violations(axe, visitor.page)]
            visitor.close()
    assert not problems, "\n".join(problems)
    click.echo(f"axe: nothing {' or '.join(BLOCKING)} on {len(PAGES) + 1} pages, in 2 schemes and 2 widths")


def violations(axe: Axe, page: Any) -> list[str]:  # noqa: ANN401 - as above
    found = axe.run(page).response["violations"]
    return [
        f"{each['impact']} {each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        if each["impact"] in BLOCKING
        for node in each["nodes"]
    ]


def take_pictures(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    IMAGES.mkdir(exist_ok=True)
    for name, path, size, scheme in PICTURES:
        visitor = Visitor(browser, root, size, scheme)
        visitor.open(path)
        visitor.page.screenshot(path=IMAGES / f"{name}.png")
        visitor.close()
    visitor = Visitor(browser, root, DESK, "light")
    visitor.open("/")
    visitor.page.fill("#q", "customer")
    visitor.page.wait_for_selector("#suggestions a")
    visitor.page.screenshot(path=IMAGES / "watson-search.png")
    visitor.close()
    large = [each.name for each in IMAGES.glob("watson-*.png") if each.stat().st_size >= MAX_PICTURE_BYTES]
    assert not large, large


@click.command()
def main() -> None:
    """Fails if a field's meaning is hard to find, or a page hard to use."""
    started = time.monotonic()
    with reported_errors(), running_registry() as root, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False, args=list(FLAGS))
        check_journeys(browser, root)
        check_pages(browser, root)
        take_pictures(browser, root)
        check_writing(browser, root)
        browser.close()
    click.echo(f"Pictures are in {IMAGES}. {time.monotonic() - started:.0f} s")
    sys.exit(0)


if __name__ == "__main__":
    main()
