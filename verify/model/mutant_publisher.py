"""The publisher with the defect that CDC_MUTANT names."""

from __future__ import annotations

import os

from publisher.cli import main
from verify.model.mutants import VARIABLE, seed_once

if __name__ == "__main__":
    seed_once(os.environ[VARIABLE])
    main()
