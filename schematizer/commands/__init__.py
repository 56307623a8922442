"""The commands of schematizer.cli other than `serve`."""
