"""`make verify WHAT=tpch`."""

from __future__ import annotations

from dev.verify.tpch.check import main

if __name__ == "__main__":
    main()
