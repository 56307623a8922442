"""Reads what the files of an environment ask for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.clients.registry.kinds import Part
from schematizer.topic_files.files.catalogue_file import principal_of
from schematizer.topic_files.planning import rights
from schematizer.topic_files.planning.things import (
    Content,
    Kind,
    Thing,
    Things,
    Value,
    Wanted,
    client_thing,
    schema_thing,
    warehouse_thing,
)
from schematizer.topic_names import parse_topic, subject_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from schematizer.topic_files.files.catalogue_file import CatalogueFile, Typology
    from schematizer.topic_files.files.reading import Repository, SourceFolder, TopicFolder
    from schematizer.topic_files.planning.rights import Right

HOUR_MS = 3_600_000
USER = "User:"
PRODUCER_RATE, CONSUMER_RATE = "producer_byte_rate", "consumer_byte_rate"


class Wishes(NamedTuple):
    """The things that an environment asks for."""

    # The things that it asks for.
    own: Things
    # Things of its cluster that other environments ask for too: they stay if this one no longer asks.
    elsewhere: frozenset[Thing]

    def without_rights(self) -> Wishes:
        """Return all but the rights, for a cluster that keeps none."""
        return Wishes({thing: one for thing, one in self.own.items() if thing.kind is not Kind.RIGHT}, self.elsewhere)


def wishes(repository: Repository, environment: str) -> Wishes:
    """Return what the files of the environment ask for. The repository has no finding of `topics check`."""
    settings = repository.catalogue.environments[environment].settings
    cluster = [name for name, other in repository.catalogue.environments.items() if other.settings == settings]
    own: Things = {}
    for topic in repository.of_environment(environment):
        own.update(_of_topic(repository, topic))
    own.update(_of_source(repository, source) for source in repository.sources_of(environment))
    shared = _shared(repository, [environment])
    of_cluster = _shared(repository, cluster)
    own.update({thing: of_cluster[thing] for thing in shared})
    others = _shared(repository, [name for name in cluster if name != environment])
    return Wishes(own, frozenset(others))


def topic_content(repository: Repository, topic: TopicFolder) -> dict[str, Value]:
    """Return the properties of Kafka's topic: the number of partitions and copies, and settings."""
    file, typology = topic.file, _typology(repository, topic)
    environment = repository.catalogue.environments[topic.environment]
    content: dict[str, Value] = {
        "partitions": file.partitions or typology.partitions,
        "replication_factor": file.replication_factor or environment.replication_factor or typology.replication_factor,
        "cleanup.policy": file.cleanup or typology.cleanup,
    }
    hours = typology.retention_hours if file.retention_hours is None else file.retention_hours
    if hours is not None:
        content["retention.ms"] = str(hours * HOUR_MS if hours >= 0 else -1)
    in_sync = file.min_in_sync_replicas or typology.min_in_sync_replicas
    if in_sync is not None:
        content["min.insync.replicas"] = str(in_sync)
    content.update({name: _setting(value) for name, value in {**typology.config, **file.config}.items()})
    return content


def _setting(value: str | int | bool) -> str:  # noqa: FBT001 - a value of any of these types
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typology(repository: Repository, topic: TopicFolder) -> Typology:
    return repository.catalogue.typologies[topic.file.typology]


def _about(repository: Repository, topic: TopicFolder) -> dict[str, str]:
    file = topic.file
    contact = repository.catalogue.owners[file.owner].contact
    about = {"path": topic.path, "owner": file.owner, "contact": contact, "typology": file.typology}
    return {**about, **_link(repository, topic.path)}


def _of_topic(repository: Repository, topic: TopicFolder) -> Iterator[tuple[Thing, Wanted]]:
    about, content = _about(repository, topic), topic_content(repository, topic)
    is_keyed = _typology(repository, topic).is_keyed or "compact" in str(content["cleanup.policy"])
    yield Thing(Kind.TOPIC, topic.name), Wanted(content, topic, is_keyed=is_keyed, about=about)
    for part, files in ((Part.KEY, [topic.key] if topic.key else []), (Part.VALUE, topic.schemas)):
        for file in files:
            assert file.schema is not None
            thing = schema_thing(subject_of(topic.name, part), file.schema.canonical)
            yield thing, Wanted({}, topic, text=file.schema.canonical, about={**about, "path": file.path})
    name = parse_topic(topic.name, repository.catalogue.pii_prefix)
    source = {"source": f"{name.namespace}/{name.source}"}
    yield Thing(Kind.ENTRY, topic.name), Wanted(_entry(topic), topic, about={**about, **source})
    yield from _clients(repository, topic, about)
    for right in _topic_rights(repository.catalogue, topic):
        yield right.thing, Wanted(right.content, topic, about=about)
    for thing, settings in _of_programs(repository.catalogue, topic):
        yield thing, Wanted(settings, topic, about=about)


def _of_source(repository: Repository, source: SourceFolder) -> tuple[Thing, Wanted]:
    """Return the documentation of a source. A doc that the file does not have is left to others."""
    file = source.file
    assert file.owner is not None
    content: dict[str, Value] = {"owner": file.owner, **({"doc": file.doc} if file.doc else {})}
    for path, field in file.fields.items():
        content |= field_content(path, field.doc, field.owner, pii=field.pii)
    contact = repository.catalogue.owners[file.owner].contact
    about = {"path": source.path, "owner": file.owner, "contact": contact, **_link(repository, source.path)}
    return Thing(Kind.SOURCE, file.name), Wanted(content, source=source, about=about)


def _link(repository: Repository, path: str) -> dict[str, str]:
    link = repository.catalogue.link
    return {} if link is None else {"link": link.replace("{path}", path)}


def _of_programs(catalogue: CatalogueFile, topic: TopicFolder) -> Iterator[tuple[Thing, Content]]:
    """Yield what the archive and the warehouses do with the topic."""
    file = topic.file
    if file.archive is not None:
        said = file.archive.model_dump(mode="json", exclude_none=True, exclude={"event_time"})
        times = {"event_time": "|".join(file.archive.event_time)} if file.archive.event_time else {}
        yield Thing(Kind.ARCHIVE, topic.name), {**said, **times, "format": file.encoding}
    for target in file.warehouses:
        personal_data = target.personal_data or catalogue.warehouses[target.warehouse].personal_data
        content: Content = {"form": target.form, "deletes": target.deletes, "personal_data": personal_data}
        yield warehouse_thing(topic.name, target.warehouse), content


def _entry(topic: TopicFolder) -> dict[str, Value]:
    """Return the properties of the registry's entry. A topic without a schema has no status there."""
    said = topic.file.documentation()
    content: dict[str, Value] = {"doc": said.doc, "owner": said.owner}
    if topic.schemas:
        content["status"] = topic.file.status.value
    for path, field in said.fields.items():
        content |= field_content(path, field.doc, field.owner, pii=field.pii)
    return content


def field_content(path: str, doc: str | None, owner: str | None, *, pii: bool) -> dict[str, Value]:
    """Return what is said of a field as properties: only what is said."""
    said: dict[str, Value] = {f"fields.{path}.doc": doc, f"fields.{path}.owner": owner, f"fields.{path}.pii": pii}
    return {name: value for name, value in said.items() if value}


def _clients(repository: Repository, topic: TopicFolder, about: Mapping[str, str]) -> Iterator[tuple[Thing, Wanted]]:
    """Producers and consumers in the registry, which knows those of topics with schemas."""
    if not topic.schemas:
        return
    services = repository.catalogue.services
    for producer in topic.file.producers:
        content: dict[str, Value] = {"team": services[producer.service].owner, "seconds": producer.seconds}
        yield client_thing(Kind.PRODUCER, topic.name, producer.service), Wanted(content, topic, about=about)
    for consumer in topic.file.consumers:
        content = {"team": services[consumer.service].owner, "seconds": consumer.seconds}
        thing = client_thing(Kind.CONSUMER, topic.name, consumer.service, consumer.group or consumer.service)
        yield thing, Wanted(content, topic, about=about)


def _topic_rights(catalogue: CatalogueFile, topic: TopicFolder) -> Iterator[Right]:
    for client in topic.file.producers:
        principal = principal_of(catalogue.services[client.service].principal, topic.environment)
        if principal is not None:
            yield from rights.producer_rights(principal, topic.name)
    for reader in topic.file.consumers:
        principal = principal_of(catalogue.services[reader.service].principal, topic.environment)
        if principal is not None:
            yield from rights.consumer_rights(principal, topic.name)
    for principal, _ in _programs(catalogue, topic):
        yield from rights.program_rights(principal, topic.name)


def _programs(catalogue: CatalogueFile, topic: TopicFolder) -> Iterator[tuple[str, str]]:
    """Yield principal and group of each program of the pipeline that reads the topic."""
    programs = [catalogue.warehouses[target.warehouse] for target in topic.file.warehouses]
    if topic.file.archive is not None and catalogue.archive is not None:
        programs = [catalogue.archive, *programs]  # type: ignore[list-item] # both have a principal and a group
    for program in programs:
        principal = principal_of(program.principal, topic.environment)
        if principal is not None:
            yield principal, program.group


def _shared(repository: Repository, environments: list[str]) -> Things:
    """Return the things of no single topic: rights on groups and transactional ids, and quotas."""
    catalogue = repository.catalogue
    things: Things = {}
    rates: dict[str, dict[str, Value]] = defaultdict(dict)
    for topic in (topic for name in environments for topic in repository.of_environment(name)):
        for right in _shared_rights(catalogue, topic):
            things[right.thing] = Wanted(right.content, about={"path": repository.catalogue_path})
        for user, rate, value in _rates(catalogue, topic):
            rates[user][rate] = float(rates[user].get(rate) or 0) + value
    for user, content in rates.items():
        things[Thing(Kind.QUOTA, user)] = Wanted(content, about={"path": repository.catalogue_path})
    return things


def _shared_rights(catalogue: CatalogueFile, topic: TopicFolder) -> Iterator[Right]:
    for reader in topic.file.consumers:
        principal = principal_of(catalogue.services[reader.service].principal, topic.environment)
        if principal is not None:
            yield rights.group_right(principal, reader.group or reader.service)
    for producer in topic.file.producers:
        service = catalogue.services[producer.service]
        principal = principal_of(service.principal, topic.environment)
        for prefix in service.transactional_ids if principal is not None else ():
            yield rights.transaction_right(str(principal), prefix)
    for principal, group in _programs(catalogue, topic):
        yield rights.group_right(principal, group)


def _rates(catalogue: CatalogueFile, topic: TopicFolder) -> Iterator[tuple[str, str, float]]:
    """Yield user, name and rate for each client of the topic. Kafka has no quota of a topic: those of a user add up."""
    if topic.file.throughput is None:
        return
    limits = catalogue.throughput[topic.file.throughput]
    clients = [(client.service, PRODUCER_RATE, limits.producer_bytes_per_second) for client in topic.file.producers]
    clients += [(client.service, CONSUMER_RATE, limits.consumer_bytes_per_second) for client in topic.file.consumers]
    for service, rate, value in clients:
        principal = principal_of(catalogue.services[service].principal, topic.environment)
        if principal is not None and principal.startswith(USER):
            yield principal.removeprefix(USER), rate, float(value)
