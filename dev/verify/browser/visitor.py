"""A person with a browser (Playwright), in a light or dark scheme, at a desk or on a phone."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from dev.local_stack.process.paths import project_root
from dev.verify.browser.chromium import FLAGS, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMAGES = project_root() / "docs" / "images"
MAX_PICTURE_BYTES = 200_000
DESK, PHONE = {"width": 1280, "height": 860}, {"width": 375, "height": 740}
SCHEMES = ("light", "dark")
BLOCKING = ("serious", "critical")


@contextmanager
def running_browser() -> Iterator[Any]:
    """CdcError if this machine has no Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False, args=list(FLAGS))
        yield browser
        browser.close()


class Visitor:
    """Counts clicks, and notes what the browser complains of.

    root: the site's address, without a slash at its end. size: the window, in CSS pixels. A page that is not found is a
    complaint, unless `may_be_missing`.
    """

    def __init__(
        self,
        browser: Any,  # noqa: ANN401 - Playwright's
        root: str,
        size: dict[str, int],
        scheme: str,
        *,
        may_be_missing: bool = False,
    ) -> None:
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.root = root
        self.clicks = 0
        self.complaints: list[str] = []
        self._axe = Axe()
        self._size, self._scheme = size, scheme
        self._may_be_missing = may_be_missing
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

    def problems(self, where: str) -> list[str]:
        """Find problems of the page that is open: it scrolls sideways, or axe finds something serious."""
        where = f"{where} {self._scheme} {self._size['width']} px"
        width = self.page.evaluate("document.documentElement.scrollWidth")
        found = [f"{width} px wide"] if width > self._size["width"] else []
        return [f"{where}: {problem}" for problem in [*found, *self._violations()]]

    def take_picture(self, name: str) -> Path:
        """Saves the window's picture to the docs' images. AssertionError if it is too large for a repository."""
        picture = IMAGES / f"{name}.png"
        self.page.screenshot(path=picture)
        size = picture.stat().st_size
        assert size < MAX_PICTURE_BYTES, f"{picture}: {size} bytes"
        return picture

    def _violations(self) -> list[str]:
        found = self._axe.run(self.page).response["violations"]
        return [
            f"{violation['impact']} {violation['id']}: {node['target']} {node['failureSummary']}"
            for violation in found
            if violation["impact"] in BLOCKING
            for node in violation["nodes"]
        ]

    def _note(self, message: Any) -> None:  # noqa: ANN401 - as above
        is_expected = self._may_be_missing and "status of 404" in message.text
        if message.type in ("error", "warning") and not is_expected:
            self.complaints.append(f"{message.text} ({message.location['url']})")
