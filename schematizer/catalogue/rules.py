"""The catalogue's part of the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """`pii_prefix`: what names of topics with personal fields begin with. `documented_namespaces`: patterns of
    namespaces that take no schema without docs and an owner. `is_announced`: registrations of producers and consumers
    go to Kafka.
    """

    pii_prefix: str = "pii-"
    documented_namespaces: tuple[str, ...] = ()
    is_announced: bool = False
