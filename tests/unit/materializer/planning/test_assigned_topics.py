"""The registry assigns the change topics: by a real registry's rules, from the stored answers while it is away."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import NativeType, UserType
from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import Registration
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.tables import message_key, to_json
from cdc_common.settings import RegistrySettings
from materializer.planning.assigned_topics import AssignedTopics
from materializer.planning.change_topics import ChangeTopics
from materializer.planning.plan import ChangeTopic, TableSchema
from materializer.planning.topic_cache import TopicCache
from stream_runtime.state.object_store import ObjectStore
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.raw_builder import INT, TABLE, column
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata

WIDER = replace(TABLE, regular_columns=(*TABLE.regular_columns, column("z", INT, ColumnKind.REGULAR)))
RENAMED = replace(TABLE, clustering=(replace(TABLE.clustering[0], name="d"),))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    running = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    yield running
    running.stop(signal.SIGKILL)


class Job:
    """A driver's topics. `prefix` is the test's own; each `topics` is as of a driver that has just started."""

    def __init__(self, url: str, prefix: str, folder: Path) -> None:
        self.prefix = prefix
        self.settings = RegistrySettings(url=url)
        self._folder = folder

    def finder(self, assigner: Any = None) -> AssignedTopics:  # noqa: ANN401 - a double
        asked = assigner or SchematizerClient.of_settings(self.settings)
        cache = TopicCache(ObjectStore(str(self._folder)), "group")
        return AssignedTopics(self.prefix, asked, RegistryClient(self.settings), cache, lambda _topic: 3)

    def found(self, *tables: TableMetadata) -> list[ChangeTopic | None]:
        return list(self.finder().find_or_create(schemas(*tables), EXACT))

    def topics(self, *tables: TableMetadata) -> list[str | None]:
        return [None if topic is None else topic.name for topic in self.found(*tables)]


def schemas(*tables: TableMetadata) -> list[TableSchema]:
    keys = [message_key(table) for table in tables]
    return [TableSchema(key[:16], key[16:], to_json(table)) for key, table in zip(keys, tables, strict=True)]


@pytest.fixture
def job(registry: Registry, request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    return Job(registry.url, request.node.name.replace("_", "-"), tmp_path)


def mark(registry: Registry, job: Job, *, pii: bool) -> None:
    fields = {"a": {"doc": "what", "owner": None, "pii": pii}}
    path = f"/api/v1/namespaces/{job.prefix}.shop/sources/orders/documentation"
    answer = registry.call("PUT", path, {"doc": None, "owner": None, "fields": fields}, "application/json")
    assert answer.status == 200, answer.body


def test_a_schema_that_resolves_both_ways_shares_the_topic(job: Job) -> None:
    topic = f"{job.prefix}.shop.orders"
    assert job.topics(TABLE) == [topic]
    assert job.topics(TABLE, WIDER) == [topic, topic]
    assert job.topics(TABLE, WIDER, RENAMED) == [topic, topic, f"{topic}-v2"]


def test_the_ids_are_those_of_confluents_api(job: Job) -> None:
    [found] = job.found(TABLE)
    assert found is not None
    assert found.partitions == 3
    with RegistryClient(job.settings) as client:
        assert client.get(found.key_schema_id)["name"] == "Key"
        assert client.get(found.value_schema_id)["name"] == "Envelope"
        assert client.has(f"{found.name}-value")


def test_an_older_schema_is_found_where_it_was_registered(job: Job, registry: Registry, tmp_path: Path) -> None:
    topic = f"{job.prefix}.shop.orders"
    first = job.found(TABLE)
    other = Job(registry.url, job.prefix, tmp_path / "another checkpoint location")
    assert other.found(TABLE, RENAMED)[0] == first[0]
    assert other.topics(TABLE, RENAMED) == [topic, f"{topic}-v2"]


def test_a_backlogs_schemas_are_registered_in_order(job: Job) -> None:
    assert job.topics(TABLE, WIDER) == [f"{job.prefix}.shop.orders"] * 2


def test_a_schema_before_a_registered_one_is_not_registered(job: Job) -> None:
    assert job.topics(WIDER) == [f"{job.prefix}.shop.orders"]
    assert job.topics(TABLE, WIDER) == [None, f"{job.prefix}.shop.orders"]


def test_a_job_that_named_its_topics_itself_keeps_them(job: Job, registry: Registry) -> None:
    topic = f"{job.prefix}.shop.orders"
    with RegistryClient(job.settings) as client:
        before = ChangeTopics(job.prefix, client, lambda _topic: 3)
        own = [
            before.find_or_create(schemas(*tables), EXACT)
            for tables in ((TABLE,), (TABLE, WIDER), (TABLE, WIDER, RENAMED))
        ]
    assert tuple(job.found(TABLE, WIDER)) == own[1]
    assert tuple(job.found(TABLE, WIDER, RENAMED)) == own[2]
    mark(registry, job, pii=True)
    assert job.topics(TABLE, WIDER, RENAMED) == [topic, topic, f"pii-{topic}-v3"]


def test_personal_data_gets_a_topic_with_the_prefix_and_goes_back(job: Job, registry: Registry) -> None:
    topic = f"{job.prefix}.shop.orders"
    assert job.topics(TABLE) == [topic]
    mark(registry, job, pii=True)
    assert job.topics(TABLE) == [f"pii-{topic}-v2"]
    assert job.topics(TABLE, WIDER) == [f"pii-{topic}-v2", f"pii-{topic}-v2"]
    mark(registry, job, pii=False)
    assert job.topics(TABLE) == [topic]


def test_fields_that_exchange_their_names_leave_the_topic(job: Job) -> None:
    """A registry compares the fields of records by their names."""
    tables = [with_fields(*names) for names in (("a", "b"), ("x", "b"), ("x", "a"), ("b", "a"))]
    for count in range(1, 4):
        job.topics(*tables[:count])
    topic = f"{job.prefix}.shop.orders"
    assert job.topics(*tables) == [topic, topic, f"{topic}-v2", f"{topic}-v2"]


def with_fields(*names: str) -> TableMetadata:
    user_type = UserType("shop", "pair", names, (NativeType("int"),) * len(names), is_multi_cell=False)
    return replace(TABLE, regular_columns=(ColumnMetadata("u", user_type, ColumnKind.REGULAR),))


def test_a_registry_that_is_away(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    running = Registry(tmp_path / "registry.db").start()
    job = Job(running.url, request.node.name.replace("_", "-"), tmp_path / "checkpoint")
    with pytest.raises(CdcError) as empty:
        Job("http://127.0.0.1:1", "cdc", tmp_path / "empty").finder().check_reachable()
    assert empty.value.code is Code.REGISTRY_UNREACHABLE
    found = job.found(TABLE, RENAMED)
    running.stop(signal.SIGKILL)
    job.finder().check_reachable()
    assert job.found(TABLE, RENAMED) == found
    with pytest.raises(CdcError) as raised:
        job.found(TABLE, RENAMED, replace(RENAMED, regular_columns=WIDER.regular_columns))
    assert raised.value.code is Code.REGISTRY_UNREACHABLE


def test_a_registry_with_confluents_api_alone_is_refused_by_name(tmp_path: Path) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = b'{"error_code":404,"message":"HTTP 404 Not Found"}'
            self.send_response(404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(CdcError) as raised:
        Job(f"http://127.0.0.1:{server.server_port}", "cdc", tmp_path).finder().check_reachable()
    server.shutdown()
    server.server_close()
    assert raised.value.code is Code.REGISTRY_REFUSED
    assert "assigns no topics" in raised.value.problem
    assert "materializer.topics" in raised.value.fix


def test_a_topic_that_is_not_the_tables_is_refused(tmp_path: Path) -> None:
    class Wrong(MemoryRegistry):
        def register(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - of another API than the base's
            return Registration(
                namespace="cdc.shop",
                source="orders",
                topic="cdc.shop.others",
                schema_id=2,
                key_schema_id=1,
                is_new_topic=True,
                is_new_schema=True,
                rule="first",
                reason="It is the first.",
            )

        def assigned_topics(self, *_: object, **__: object) -> list[Any]:
            return []

    finder = Job("http://127.0.0.1:1", "cdc", tmp_path).finder(Wrong())
    with pytest.raises(CdcError, match=r"cdc\.shop\.others"):
        finder.find_or_create(schemas(TABLE), EXACT)


def test_a_stored_answer_that_is_damaged_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "group.topics"
    folder.mkdir()
    (folder / "shop.orders.json").write_text("[]")
    with pytest.raises(CdcError) as raised:
        TopicCache(ObjectStore(str(tmp_path)), "group").read("shop.orders")
    assert raised.value.code is Code.STATE_DAMAGED
    assert "shop.orders.json" in raised.value.problem
