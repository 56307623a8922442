"""Writes all generated pages and sections of the docs: `make docs-reference`.

Prints the name of each page that it has changed. With `--check` it changes nothing, and exits with 1 if a page is out
of date.
"""

from __future__ import annotations

import sys

from dev.local_stack.process.paths import project_root
from dev.tools.reference.pages import PAGES


def main(*, is_check: bool) -> int:
    outdated = []
    for name, made in PAGES.items():
        file = project_root() / name
        page = file.read_text(encoding="utf-8") if file.exists() else ""
        fresh = made(page)
        if fresh != page:
            outdated.append(name)
            if not is_check:
                file.write_text(fresh, encoding="utf-8")
    sys.stdout.writelines(f"{name}\n" for name in outdated)
    return int(is_check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main(is_check="--check" in sys.argv[1:]))
