"""The publisher's status, as metrics, JSON and text."""
