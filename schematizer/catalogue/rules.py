"""The catalogue's part of the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a registry."""

    # The beginning of the names of topics with personal fields.
    pii_prefix: str = "pii-"
    # Patterns of namespaces that take no schema without docs and an owner.
    documented_namespaces: tuple[str, ...] = ()
    # Whether registrations of producers and consumers go to Kafka.
    is_announced: bool = False
