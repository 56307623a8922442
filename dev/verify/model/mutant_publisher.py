"""The publisher with the defect that CDC_MUTANT names, and so its snapshot worker, which imports this module."""

from __future__ import annotations

import os

from dev.verify.model.mutants import VARIABLE, seed_once
from publisher.cli import main

seed_once(os.environ[VARIABLE])

if __name__ == "__main__":
    main()
