"""What `make install` does: Python packages, Java and jars into the project folder."""
