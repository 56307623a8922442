"""`make install`: puts Python packages, Java and jars into the project folder."""
