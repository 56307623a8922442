"""`python -m joinery`."""

from joinery.cli import main

if __name__ == "__main__":
    main()
