"""Reads from the registry what files ask for there, and makes it: schemas, entries, producers and consumers."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Self

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.kinds import Part, Status
from cdc_common.clients.registry.schematizer import SchematizerClient
from schematizer.avro_schemas.parsing import InvalidSchemaError, parse
from schematizer.topic_files.planning.things import (
    Found,
    Kept,
    Kind,
    Thing,
    client_thing,
    schema_thing,
    subject_of_thing,
)
from schematizer.topic_files.planning.wanted import field_content
from schematizer.topic_names import parse_subject, parse_topic, subject_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from types import TracebackType

    from cdc_common.clients.registry.confluent import RegisteredVersion
    from cdc_common.clients.registry.views import SourceDocumentation, Topic
    from cdc_common.settings import RegistrySettings
    from schematizer.topic_files.planning.differences import Step
    from schematizer.topic_files.planning.things import Value, Wanted


class Registry:
    """The registry of an environment. A context manager."""

    def __init__(self, settings: RegistrySettings, pii_prefix: str) -> None:
        """`pii_prefix`: of the names of topics with personal data."""
        self.client = SchematizerClient.of_settings(settings)
        self._confluent = RegistryClient(settings)
        self._pii_prefix = pii_prefix
        self._topics: dict[str, Topic] = {}
        self._versions: dict[Thing, tuple[int, int]] = {}  # the number and the schema's id
        self._docs: dict[Thing, str | None] = {}
        self._newest: dict[str, int] = {}  # the id of each subject's newest schema

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self._confluent.close()

    def kept(self, deployment: str) -> dict[Thing, Kept]:
        """Read what was made from the files of a deployment."""
        known = {kind.value for kind in Kind}
        return {
            Thing(Kind(one.kind), one.name): Kept(one.content, one.about)
            for one in self.client.managed(deployment)
            if one.kind in known  # a newer program may have made others
        }

    def read(self, topics: Collection[str], sources: Collection[str] = ()) -> dict[Thing, Found]:
        """Read what there is of the topics, and of sources (`NAMESPACE/SOURCE`) that only have documentation."""
        self._topics = {topic.name: topic for topic in self.client.topics() if topic.name in topics}
        found = self._schemas(topics)
        found.update(self._documented(topics, sources))
        for producer in self.client.producers():
            thing = client_thing(Kind.PRODUCER, producer.topic, producer.service)
            found[thing] = self._client(producer.topic, producer.team, producer.expected_frequency_seconds)
        for consumer in self.client.consumers():
            thing = client_thing(Kind.CONSUMER, consumer.topic, consumer.service, consumer.consumer_group)
            found[thing] = self._client(consumer.topic, consumer.team, consumer.expected_frequency_seconds)
        return found

    def create(self, step: Step) -> None:
        """Make or change a thing as the files say."""
        wanted = step.wanted
        assert wanted is not None
        match step.thing.kind:
            case Kind.SOURCE:
                assert wanted.source is not None
                said = wanted.source.file.documentation(self._docs.get(step.thing))
                self.client.document(*_place(step.thing.name), said)
            case Kind.SCHEMA:
                subject = subject_of_thing(step.thing)
                self._newest[subject] = self._confluent.register_text(subject, wanted.text)
            case Kind.ENTRY:
                self._document(wanted)
            case Kind.PRODUCER:
                self._register_producer(step.thing, wanted)
            case Kind.CONSUMER:
                topic, service, group = step.thing.name.split(" ", 2)
                seconds = int(str(wanted.content["seconds"]))
                self.client.register_consumer(str(wanted.content["team"]), service, topic, group, seconds)
            case _:
                raise AssertionError(step.thing)

    def delete(self, thing: Thing) -> None:
        """Remove a thing that the files no longer ask for."""
        match thing.kind:
            case Kind.SCHEMA:
                number, _ = self._versions[thing]
                self._confluent.delete_version(subject_of_thing(thing), number)
            case Kind.ENTRY:
                if thing.name in self._topics:
                    self.client.set_status(thing.name, Status.DISABLED)
            case Kind.PRODUCER:
                topic, service = thing.name.split(" ")
                self.client.remove_producer(topic, service)
            case Kind.CONSUMER:
                topic, service, group = thing.name.split(" ", 2)
                self.client.remove_consumer(topic, service, group)
            case _:
                raise AssertionError(thing)

    def versions(self, topics: Collection[str]) -> Iterator[RegisteredVersion]:
        """Yield the versions of the topics' subjects, the oldest of each subject first."""
        subjects = sorted(subject_of(topic, part) for topic in topics for part in Part)
        for _, some in groupby(subjects, lambda subject: subject.partition(".")[0]):  # a registry has others too
            wanted = set(some)
            every = self._confluent.every_version(_common_start(wanted))
            yield from (one for one in every if one.subject in wanted)

    def _schemas(self, topics: Collection[str]) -> dict[Thing, Found]:
        found: dict[Thing, Found] = {}
        for one in self.versions(topics):
            parsed = parse_subject(one.subject)
            assert parsed is not None
            thing = schema_thing(one.subject, _canonical(one.text))
            found[thing] = Found({}, topic=parsed[0])
            self._versions[thing] = one.version, one.schema_id
            self._newest[one.subject] = one.schema_id
        return found

    def _documented(self, topics: Collection[str], sources: Collection[str]) -> Iterator[tuple[Thing, Found]]:
        """Read the entries of topics, and the documentation of sources: a request for each namespace."""
        names = {Thing(Kind.ENTRY, topic): parse_topic(topic, self._pii_prefix)[:2] for topic in topics}
        names |= {Thing(Kind.SOURCE, source): _place(source) for source in sources}
        said = {namespace: self._documentation_of(namespace) for namespace in sorted({at for at, _ in names.values()})}
        for thing, (namespace, source) in names.items():
            of_source = said[namespace].get(source)
            if of_source is not None:
                self._docs[thing] = of_source.doc
                yield thing, self._entry(thing, of_source)

    def _documentation_of(self, namespace: str) -> dict[str, SourceDocumentation]:
        try:
            return self.client.documentation_of(namespace)
        except RegistryRequestError as error:
            if error.is_not_found:
                return {}
            raise

    def _entry(self, thing: Thing, said: SourceDocumentation) -> Found:
        content: dict[str, Value] = {"doc": said.doc, "owner": said.owner}
        for path, field in said.fields.items():
            content |= field_content(path, field.doc, field.owner, pii=field.pii)
        if thing.kind is Kind.SOURCE:
            return Found(content)
        if thing.name in self._topics:
            content["status"] = self._topics[thing.name].status.value
        return Found(content, topic=thing.name)

    def _client(self, topic: str, team: str, seconds: int) -> Found:
        return Found({"team": team, "seconds": seconds}, topic=topic)

    def _document(self, wanted: Wanted) -> None:
        topic = wanted.topic
        assert topic is not None
        name = parse_topic(topic.name, self._pii_prefix)
        said: SourceDocumentation = topic.file.documentation()
        self.client.document(name.namespace, name.source, said)
        known = self._topics.get(topic.name)
        status = Status.READ_WRITE if known is None else known.status  # its first schema has made it
        if topic.schemas and status is not topic.file.status:
            self.client.set_status(topic.name, topic.file.status)

    def _register_producer(self, thing: Thing, wanted: Wanted) -> None:
        topic, service = thing.name.split(" ")
        newest = self._newest[subject_of(topic, Part.VALUE)]
        seconds = int(str(wanted.content["seconds"]))
        self.client.register_producer(str(wanted.content["team"]), service, topic, newest, seconds)


def _place(source: str) -> tuple[str, str]:
    """The namespace and the source of a name, which have no slash."""
    namespace, _, name = source.partition("/")
    return namespace, name


def topics_of(things: Iterable[Thing]) -> set[str]:
    """Return the topics that these things are about, of those kinds whose names begin with one."""
    found = set()
    for thing in things:
        if thing.kind in (Kind.TOPIC, Kind.ENTRY):
            found.add(thing.name)
        elif thing.kind in (Kind.PRODUCER, Kind.CONSUMER):
            found.add(thing.name.partition(" ")[0])
        elif thing.kind is Kind.SCHEMA:
            parsed = parse_subject(subject_of_thing(thing))
            if parsed is not None:
                found.add(parsed[0])
    return found


def _common_start(texts: Collection[str]) -> str:
    """Return what all texts begin with."""
    first, last = min(texts), max(texts)
    same = (index for index, letter in enumerate(first) if index >= len(last) or letter != last[index])
    return first[: next(same, len(first))]


def _canonical(text: str) -> str:
    """Return the schema as files are compared. One that this program cannot read is another than all of the files."""
    try:
        return parse(text).canonical
    except InvalidSchemaError:
        return text
