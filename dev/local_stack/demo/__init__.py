"""`make demo` and `make stack`: example tables, a story, a load and the final comparison."""
