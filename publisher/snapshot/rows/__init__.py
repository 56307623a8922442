"""Turns a table's merged SSTables into row images, and sends them at the allowed rate."""
