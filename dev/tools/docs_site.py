"""Builds the docs as a site that works offline: `python -m dev.tools.docs_site [--out FOLDER]` (make docs).

Sphinx with MyST reads the Markdown pages of docs/. Any warning fails the build: a link to a missing page or heading, a
page with two titles, an unknown language of a code block. The pages' menu is made here from the folders, so that a new
page appears without an entry anywhere.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import click
from pygments.lexers.sql import SqlLexer
from pygments.token import Punctuation
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = project_root()
PAGES = ROOT / "docs"
FRONT = "README"
# A fenced block of code, or a link: what stands between the brackets, and its target without an anchor.
LINK = re.compile(r"^ *(```+|~~~+).*?^ *\1|(?<!!)\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)", re.DOTALL | re.MULTILINE)
TITLE = "Cassandra CDC materializer"
# A section of an error's code: search finds a heading only by half of its letters, and an entry of the index at once.
ERROR = re.compile(r"^(?=## (CDC-\d+) )", re.MULTILINE)


class Section(NamedTuple):
    """A part of the menu: the pages of a folder."""

    # The heading.
    caption: str
    # The folder in docs/; "" for docs/ itself.
    folder: str
    # The names of the pages that come first, in this order.
    first: tuple[str, ...] = ()


MENU = (
    Section("", "", ("tutorial", "how-it-works", "compared-with-debezium", "library")),
    Section("Guides", "guides", ("install", "size", "monitor", "recover", "back-up", "upgrade", "secure")),
    Section("Consumers", "guides/consumers", ("jdbc", "flink", "clickhouse", "spark", "duckdb", "clients")),
    Section("Reference", "reference", ("change-events", "change-event-examples", "data-types", "configuration")),
    Section("Examples", "example-segment"),
    Section("", "example-sstable"),
    Section("Internals", "internals", ("verification", "performance", "fault-points")),
    Section("Decisions", "internals/decisions", ("README",)),
)
SETTINGS = {
    "project": TITLE,
    "extensions": ["myst_parser", "dev.tools.docs_site"],
    "root_doc": FRONT,
    "source_suffix": {".md": "markdown"},
    "language": "en",
    "myst_heading_anchors": 6,
    # What Git hosts do not read as Markdown either, such as the pattern `[^/]` outside of code.
    "myst_disable_syntax": ["colon_fence", "footnote_def", "footnote_inline", "footnote_ref", "myst_line_comment"],
    "html_theme": "furo",
    "html_title": TITLE,
    "html_copy_source": False,
    "html_show_sphinx": False,
    "html_last_updated_fmt": None,
    "html_show_copyright": False,
    "html_static_path": [str(Path(__file__).with_suffix(".css")), str(Path(__file__).with_name("docs_page.js"))],
    "html_css_files": ["docs_site.css"],
    "html_js_files": ["docs_page.js"],
    "html_favicon": str(Path(__file__).with_suffix(".svg")),
    "html_search_scorer": str(Path(__file__).with_suffix(".js")),
    # Output that is cut short in an example is no JSON.
    "suppress_warnings": ["misc.highlighting_failure"],
}


def menu(pages: Path) -> Iterator[tuple[Section, list[str]]]:
    """Each section with its pages' names (`guides/install`); sections without pages are left out."""
    for section in MENU:
        folder = pages / section.folder
        found = sorted(file.stem for file in folder.glob("*.md"))
        names = [name for name in section.first if name in found]
        names += [name for name in found if name not in names]
        full = [f"{section.folder}/{name}".lstrip("/") for name in names if section.folder or name != FRONT]
        if full:
            yield section, full


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """A page's text as Sphinx reads it: `page` is its name, `source` a list of one."""
    folder = posixpath.dirname(page)
    text = LINK.sub(lambda match: _link(Path(app.srcdir), folder, match), source[0])
    source[0] = ERROR.sub(r"```{index} single: ! \1\n```\n\n", text)
    if page == FRONT:
        source[0] += "".join(_directive(section, names) for section, names in menu(Path(app.srcdir)))


def _link(pages: Path, folder: str, match: re.Match[str]) -> str:
    """A folder of pages stands for its README; what is not among the pages is named by its path in the repository."""
    text, target, anchor = match[2], match[3], match[4] or ""
    if target is None:
        return match[0]
    path = posixpath.normpath(posixpath.join(folder, target))
    if path.startswith("../"):
        name = path.removeprefix("../")
        return text if text.strip("`/") == name else f"{text} (`{name}`)"
    if (pages / path).is_dir():
        return f"[{text}]({target.rstrip('/')}/README.md{anchor})"
    return match[0]


def _directive(section: Section, names: list[str]) -> str:
    """The menu's part, which the page itself does not show."""
    caption = [f":caption: {section.caption}"] if section.caption else []
    return "\n".join(["\n\n```{toctree}", ":hidden:", *caption, *names, "```\n"])


class CqlLexer(SqlLexer):
    """SQL with collections."""

    name = "CQL"
    aliases: ClassVar = ["cql"]
    tokens: ClassVar = {**SqlLexer.tokens, "root": [*SqlLexer.tokens["root"], (r"[{}\[\]]", Punctuation)]}


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx: this module is one of its extensions."""
    app.connect("source-read", prepare)
    for name in ("cql", "sql"):
        app.add_lexer(name, CqlLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def build(out: Path, pages: Path = PAGES) -> bool:
    """Whether the site was built without a warning. `out` is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            pages,
            None,
            out,
            out / ".doctrees",
            "html",
            SETTINGS,
            freshenv=True,
            warningiserror=True,
            status=None,
            warning=sys.stderr,
            parallel=2,
        )
        app.build(force_all=True)
    shutil.rmtree(out / ".doctrees")
    shutil.copyfile(out / f"{FRONT}.html", out / "index.html")
    return app.statuscode == 0


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "site", help="Default: site")
def main(out: Path) -> None:
    is_sound = build(out)
    click.echo(f"{out / 'index.html'}")
    sys.exit(0 if is_sound else 1)


if __name__ == "__main__":
    main()
