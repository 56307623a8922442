"""`make verify WHAT=site`: the docs' site in headless Chromium (Debian's package `chromium`).

Builds the site as `make docs` does and serves it on this machine. Every page opens in a light window of a desk and in a
dark one of a phone: the browser complains of nothing, no image is broken, nothing comes from another server, no page
scrolls sideways, and axe-core finds nothing serious or critical. Search finds what a reader looks for. Pictures for the
docs go to docs/images.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cdc_common.program.cli import reported_errors
from dev.local_stack.process.network import LOCALHOST
from dev.tools.docs_site import build
from dev.verify.browser.visitor import DESK, IMAGES, PHONE, SCHEMES, Visitor, running_browser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WINDOWS = ((DESK, "light"), (PHONE, "dark"))
SEARCH_BOX = ".sidebar-search[name='q']"
RESULTS = "#search-results ul.search li a"
FRONT, GUIDE, ERROR = "/index.html", "/guides/size.html", "/reference/errors.html#cdc-012-cdc-disabled-on-the-node"
# Drawn only in the other scheme, or only in the other window.
BROKEN_IMAGES = "[...document.images].filter(each => !each.complete || !each.naturalWidth).map(each => each.src)"


class Term(NamedTuple):
    """A reader's search."""

    # The words.
    text: str
    # The page that has to be among the first results.
    page: str


FIRST_RESULTS = 10
TERMS = (
    Term("cdc_raw full", "guides/size.html"),
    Term("CDC-012", "reference/errors.html"),
    Term("reorder_seconds", "reference/configuration.html"),
    Term("tombstone", "reference/change-events.html"),
    Term("audit", "guides/snapshot-and-audit.html"),
)


class QuietHandler(SimpleHTTPRequestHandler):
    """Logs no requests."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the folder's files."""
    with ThreadingHTTPServer((LOCALHOST, 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{LOCALHOST}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Reader(Visitor):
    """Notes images that are broken, and requests to other servers too."""

    def __init__(self, browser: Any, root: str, size: dict[str, int], scheme: str) -> None:  # noqa: ANN401 - Playwright's
        super().__init__(browser, root, size, scheme)
        self.page.on("request", self._note_request)

    def problems(self, where: str) -> list[str]:
        broken = self.page.evaluate(BROKEN_IMAGES)
        return [*(f"{where}: broken image {image}" for image in broken), *super().problems(where)]

    def search(self, text: str) -> None:
        """Search from the open page, with its search box."""
        self.page.fill(SEARCH_BOX, text)
        self.page.press(SEARCH_BOX, "Enter")
        self.page.wait_for_selector(RESULTS)
        self.page.wait_for_function("!document.querySelector('.search-summary')?.textContent.includes('Searching')")

    def end(self) -> list[str]:
        """Close the window. What the browser complained of."""
        self.context.close()
        return self.complaints

    def _note_request(self, request: Any) -> None:  # noqa: ANN401 - as above
        if not request.url.startswith((self.root, "data:")):
            self.complaints.append(f"a request to {request.url}")


def page_problems(browser: Any, root: str, paths: Sequence[str]) -> list[str]:  # noqa: ANN401 - as above
    problems: list[str] = []
    for size, scheme in WINDOWS:
        reader = Reader(browser, root, size, scheme)
        for path in paths:
            reader.open(path)
            problems += reader.problems(path)
        problems += reader.end()
    click.echo(f"axe: {len(paths)} pages, on a light desk and a dark phone")
    return problems


def scheme_problems(browser: Any, root: str) -> list[str]:  # noqa: ANN401 - as above
    """The front page, a guide, an error and results of a search, in each scheme and width."""
    problems: list[str] = []
    for scheme in SCHEMES:
        for size in (DESK, PHONE):
            reader = Reader(browser, root, size, scheme)
            for path in (FRONT, GUIDE, ERROR, f"/search.html?q={TERMS[0].text}"):
                reader.open(path)
                if path.startswith("/search"):
                    reader.page.wait_for_selector(RESULTS)
                problems += reader.problems(path)
            problems += reader.end()
    click.echo("axe: the front page, a guide, an error and results of a search, each scheme, 1280 and 375 px")
    return problems


def check_search(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    """Each term from the front page; the wanted result is opened, and marks what was looked for."""
    reader = Reader(browser, root, DESK, "light")
    for term in TERMS:
        reader.open(FRONT)
        reader.search(term.text)
        found = [link.get_attribute("href") for link in reader.page.query_selector_all(RESULTS)]
        places = [at for at, href in enumerate(found, 1) if href.partition("#")[0].partition("?")[0] == term.page]
        assert places, f"search for {term.text!r} finds {found} and not {term.page}"
        assert places[0] <= FIRST_RESULTS, f"search for {term.text!r}: {term.page} is number {places[0]} of {found}"
        reader.click(f"{RESULTS}[href^='{term.page}'] >> nth=0")
        reader.page.wait_for_url(f"**/{term.page}*")
        click.echo(f"search for {term.text!r}: {term.page} is number {places[0]} of {len(found)}")
    reader.close()


def take_pictures(browser: Any, root: str) -> None:  # noqa: ANN401 - as above
    reader = Reader(browser, root, DESK, "light")
    reader.open(FRONT)
    reader.take_picture("site-front")
    reader.close()
    reader = Reader(browser, root, DESK, "dark")
    reader.open(FRONT)
    reader.search(TERMS[0].text)
    reader.take_picture("site-search")
    reader.close()
    reader = Reader(browser, root, PHONE, "dark")
    reader.open(ERROR)
    reader.take_picture("site-phone")
    reader.close()


@click.command()
def main() -> None:
    """Fails if a page of the docs' site is hard to use."""
    started = time.monotonic()
    with reported_errors(), tempfile.TemporaryDirectory() as folder, served(Path(folder)) as root:
        out = Path(folder, "site")
        assert build(out), "the site was built with warnings"
        paths = sorted(f"/{page.relative_to(out)}" for page in out.rglob("*.html"))
        site = f"{root}/site"
        with running_browser() as browser:
            check_search(browser, site)
            take_pictures(browser, site)
            problems = [*scheme_problems(browser, site), *page_problems(browser, site, paths)]
    for problem in problems:
        click.secho(problem, fg="red")
    click.echo(f"{len(problems)} problems; pictures are in {IMAGES}. {time.monotonic() - started:.0f} s")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
