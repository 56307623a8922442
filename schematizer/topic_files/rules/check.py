"""All rules, on all topics of a repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from schematizer.topic_files.rules import environments, fields, naming, schemas, sources
from schematizer.topic_files.rules.codes import Finding
from schematizer.topic_files.rules.waivers import Waived, judge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from schematizer.topic_files.files.reading import Repository, TopicFolder


@dataclass(frozen=True)
class Checked:
    """The result of a check."""

    # The number of topics, each environment counted.
    topics: int
    # The findings that count, by path and code.
    findings: list[Finding]
    # The findings that do not count.
    waived: list[Waived]


def check_repository(repository: Repository, today: date) -> Checked:
    """Check all topics. `today`: waivers that ended before do not count."""
    findings = [Finding(unread.rule, unread.path, unread.problem) for unread in repository.unread]
    findings += naming.check_services(repository)
    findings += naming.check_unique(repository)
    findings += sources.check_sources(repository)
    findings += _environments(repository)
    waived: list[Waived] = []
    places = {(topic.levels, topic.environment): topic for topic in repository.topics}
    for topic in repository.topics:
        before = repository.catalogue.environments[topic.environment].after
        found = [*_of_topic(repository, topic), *environments.check_order(places, topic, before)]
        judged = judge(topic, found, today)
        findings += judged.findings
        waived += judged.waived
    return Checked(len(repository.topics), sorted(findings, key=lambda found: (found.path, found.rule)), waived)


def _of_topic(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    yield from naming.check_names(repository, topic)
    yield from naming.check_references(repository, topic)
    yield from naming.check_clients(repository, topic)
    yield from fields.check_docs(topic)
    yield from fields.check_types(repository, topic)
    yield from fields.check_personal(repository, topic)
    yield from fields.check_event_time(topic)
    yield from fields.check_warehouses(repository, topic)
    yield from schemas.check_schemas(repository, topic)


def _environments(repository: Repository) -> Iterator[Finding]:
    known = repository.catalogue.environments
    for name, environment in known.items():
        if environment.after is not None and environment.after not in known:
            yield Finding(
                "T002", repository.catalogue_path, f"{name} comes after {environment.after}, which is unknown"
            )
