"""Holds what a snapshot sends and how far it is, on this node and on the others, and shows both."""
