"""The topic files that made things, as pages show them: where the file is, its environment and its typology."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdc_common.clients.registry.views import ManagedSince, Topic
    from schematizer.service import Catalogue

_SCHEMES = ("https://", "http://")
"""Schemes of links to files. Any other, such as javascript:, is no link."""


class TopicFile(NamedTuple):
    """A file of a repository, as the last apply noted it."""

    # The environment.
    environment: str
    # Its path in the repository.
    path: str
    # Its page at the code host; None if catalogue.toml gives no link.
    link: str | None
    # The kind of topic; None of a source.
    typology: str | None
    # Where to reach its owner.
    contact: str | None


def files_of_topics(catalogue: Catalogue, topics: Collection[Topic]) -> dict[str, list[TopicFile]]:
    """Return the files of topics, by the topic's name."""
    return _files(catalogue, "topic", [topic.name for topic in topics])


def file_of_source(catalogue: Catalogue, namespace: str, source: str, topics: Collection[Topic]) -> TopicFile | None:
    """Return the file that has the documentation of a source: its own, or that of one of its topics."""
    of_source = _files(catalogue, "source", [f"{namespace}/{source}"])
    found = [*of_source.values(), *files_of_topics(catalogue, topics).values()]
    return found[0][0] if found else None


def _files(catalogue: Catalogue, kind: str, names: Collection[str]) -> dict[str, list[TopicFile]]:
    found: dict[str, list[TopicFile]] = {}
    for noted in catalogue.deployments.of_names(kind, names):
        if "pending" not in noted.about:
            found.setdefault(noted.name, []).append(_file(noted))
    return found


def _file(noted: ManagedSince) -> TopicFile:
    about = {name: str(value) for name, value in noted.about.items()}
    link = about.get("link", "")
    return TopicFile(
        noted.deployment,
        about.get("path", ""),
        link if link.startswith(_SCHEMES) else None,
        about.get("typology"),
        about.get("contact"),
    )
