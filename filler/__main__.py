"""`python -m filler`."""

from __future__ import annotations

from filler.cli import main

if __name__ == "__main__":
    main()
