"""Joined changes as the messages of the target's topic."""
