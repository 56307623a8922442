"""Asks a real Prometheus that scrapes the running programs for every panel and every alert."""
