"""Writes padding, so that every commit log segment fills up and is released to CDC within a configured time."""
