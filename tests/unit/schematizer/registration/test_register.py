"""Registration and the assignment of topics: the same description, the same topic; a decision for each new schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.registry.kinds import Status
from cdc_common.clients.registry.views import FieldText, Registration, SourceDocumentation
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.converters.converted import FieldDocumentation
from schematizer.errors import CatalogueError, Refusal
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror
from schematizer.registration.register import Description
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cdc_common.clients.registry.views import Decision

ID = {"name": "id", "type": "int"}
NAME = {"name": "name", "type": ["null", "string"], "default": None}
EMAIL = {"name": "email", "type": ["null", "string"], "default": None}
PHONE = {"name": "phone", "type": ["null", "string"], "default": None}
PII = FieldDocumentation(is_pii=True)
CQL = "CREATE TABLE orders (id int, line int, note text, PRIMARY KEY (id, line)) WITH comment = 'what was bought'"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'registry.db'}")
    yield opened
    opened.close()


@pytest.fixture
def catalogue(database: Database) -> Catalogue:
    return Catalogue(database, Rules("pii-", ("strict.*",)))


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database, Mirror("pii-"))


def avro(*fields: object, key: tuple[str, ...] = ("id",)) -> str:
    return json.dumps({"type": "record", "name": "users", "primaryKey": list(key), "fields": list(fields)})


def register(catalogue: Catalogue, text: str, **more: object) -> Registration:
    given = {"namespace": "cdc.shop", "format": "avro", "text": text, **more}
    return catalogue.registering.register(Description(**given), by="test")  # type: ignore[arg-type] # a test's own words


def decisions(catalogue: Catalogue) -> list[Decision]:
    return catalogue.history.decisions("cdc.shop", "users")


def test_the_first_schema_makes_a_topic(catalogue: Catalogue, store: Store) -> None:
    made = register(catalogue, avro(ID, NAME))
    assert (made.topic, made.is_new_topic, made.rule) == ("cdc.shop.users", True, "first-topic")
    assert store.version("cdc.shop.users-value", "latest", deleted=False).schema_id == made.schema_id
    [decision] = decisions(catalogue)
    assert (decision.topic, decision.schema_id, decision.reason) == (made.topic, made.schema_id, made.reason)


def test_raw_topics_of_the_source_count_no_versions(catalogue: Catalogue, store: Store) -> None:
    for topic in ("cdc.raw.shop.users", "cdc.dead.shop.users"):
        store.register(f"{topic}-value", avro(ID))
    assert register(catalogue, avro(ID, NAME)).topic == "cdc.shop.users"
    assert register(catalogue, avro(ID, NAME), fields={"name": PII}).topic == "pii-cdc.shop.users-v2"


def test_the_same_description_changes_nothing(catalogue: Catalogue) -> None:
    made = register(catalogue, avro(ID, NAME), owner="team")
    changes = catalogue.history.changes()
    again = register(catalogue, avro(ID, NAME), owner="team")
    assert (again.topic, again.schema_id, again.is_new_schema) == (made.topic, made.schema_id, False)
    assert catalogue.history.changes() == changes
    assert len(decisions(catalogue)) == 1


def test_schemas_that_read_each_other_share_the_topic(catalogue: Catalogue) -> None:
    first = register(catalogue, avro(ID, NAME))
    second = register(catalogue, avro(ID, NAME, PHONE))
    assert (second.topic, second.is_new_topic, second.rule) == (first.topic, False, "compatible")
    assert second.schema_id != first.schema_id


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ((ID, {"name": "name", "type": "string"}), "incompatible"),  # cannot read the null of the first
        ((ID, NAME, {"name": "more", "type": "int"}), "incompatible"),  # a reader of it finds no value
        (({"name": "id", "type": "string"}, NAME), "incompatible"),
    ],
)
def test_schemas_that_do_not_get_a_new_topic(catalogue: Catalogue, fields: tuple[object, ...], rule: str) -> None:
    register(catalogue, avro(ID, NAME))
    made = register(catalogue, avro(*fields))
    assert (made.topic, made.is_new_topic, made.rule) == ("cdc.shop.users-v2", True, rule)
    assert "cdc.shop.users" in made.reason


def test_all_enabled_schemas_count_not_only_the_newest(catalogue: Catalogue) -> None:
    """The third reads the second, but not the first; once the first is disabled it may share the topic."""
    middle = {"name": "a", "type": ["null", "int"], "default": None}
    register(catalogue, avro(ID, {"name": "a", "type": ["null", "int"], "default": None}))
    register(catalogue, avro(ID))
    assert register(catalogue, avro(ID, {**middle, "type": ["null", "string"]})).topic == "cdc.shop.users-v2"
    catalogue.topics.set_status("cdc.shop.users-v2", Status.DISABLED, by="test")


def test_a_disabled_schema_does_not_count(catalogue: Catalogue) -> None:
    first = register(catalogue, avro(ID, {"name": "a", "type": ["null", "int"], "default": None}))
    second = register(catalogue, avro(ID))
    catalogue.topics.set_schema_status(first.topic, first.schema_id, Status.DISABLED, by="test")
    third = register(catalogue, avro(ID, {"name": "a", "type": ["null", "string"], "default": None}))
    assert (third.topic, third.is_new_topic) == (second.topic, False)


def test_an_older_topic_keeps_its_schemas(catalogue: Catalogue) -> None:
    """Two services that register different versions in turn do not make topic after topic."""
    old, new = avro(ID, NAME), avro({"name": "id", "type": "string"}, NAME)
    assert [register(catalogue, text).topic for text in (old, new, old, new, old)] == [
        "cdc.shop.users",
        "cdc.shop.users-v2",
        "cdc.shop.users",
        "cdc.shop.users-v2",
        "cdc.shop.users",
    ]


@pytest.mark.parametrize("key", [("id", "name"), ("name",), ()])
def test_another_primary_key_is_a_new_topic(catalogue: Catalogue, key: tuple[str, ...]) -> None:
    register(catalogue, avro(ID, NAME))
    made = register(catalogue, avro(ID, NAME, key=key))
    assert (made.topic, made.rule) == ("cdc.shop.users-v2", "primary-key")


def test_a_flag_for_personal_data_is_a_new_topic_under_its_prefix(catalogue: Catalogue) -> None:
    register(catalogue, avro(ID, EMAIL))
    made = register(catalogue, avro(ID, EMAIL), fields={"email": PII})
    assert (made.topic, made.rule) == ("pii-cdc.shop.users-v2", "pii-flag")
    assert catalogue.topics.get(made.topic).pii == ["email"]
    assert register(catalogue, avro(ID, EMAIL)).topic == made.topic  # the flag is remembered
    back = register(catalogue, avro(ID, EMAIL), fields={"email": FieldDocumentation(is_pii=False)})
    assert back.topic == "cdc.shop.users"  # which has this schema without the flag


def test_a_new_personal_field_needs_a_topic_for_personal_data(catalogue: Catalogue) -> None:
    register(catalogue, avro(ID, NAME))
    made = register(catalogue, avro(ID, NAME, EMAIL), fields={"email": PII})
    assert (made.topic, made.rule) == ("pii-cdc.shop.users-v2", "pii-needs-its-topic")
    more = register(catalogue, avro(ID, NAME, EMAIL, PHONE), fields={"phone": PII})
    assert (more.topic, more.rule) == (made.topic, "compatible")
    assert catalogue.topics.get(made.topic).pii == ["email", "phone"]


def test_what_is_inside_a_personal_field_is_personal(catalogue: Catalogue) -> None:
    home = {"type": "record", "name": "Home", "fields": [{"name": "street", "type": "string"}]}
    made = register(catalogue, avro(ID, {"name": "home", "type": home}), fields={"home": PII})
    assert catalogue.topics.get(made.topic).pii == ["home", "home.street"]


def test_no_personal_field_reaches_a_topic_without_the_prefix(catalogue: Catalogue) -> None:
    catalogue.documentation.put(
        "cdc.shop", "users", SourceDocumentation(fields={"email": FieldText(pii=True)}), by="test"
    )
    for fields in ((ID, NAME), (ID, EMAIL), (ID, NAME, EMAIL), ({"name": "id", "type": "long"}, EMAIL)):
        register(catalogue, avro(*fields))
    for topic in catalogue.topics.every():
        paths = {e.path for s in catalogue.topics.schemas(topic.name) for e in catalogue.schemas.elements(s.schema_id)}
        assert ("email" in paths) <= topic.name.startswith("pii-")
        assert not topic.pii_misplaced


def mark_email(catalogue: Catalogue) -> None:
    said = SourceDocumentation(fields={"email": FieldText(pii=True)})
    catalogue.documentation.put("cdc.shop", "users", said, by="test")


@pytest.mark.parametrize("is_marked_first", [True, False])
def test_a_topic_of_confluents_interface_with_a_personal_field(
    catalogue: Catalogue, store: Store, *, is_marked_first: bool
) -> None:
    """It is marked, whenever the field was; and the same schema gets a topic of its own over the other interface."""
    if is_marked_first:
        mark_email(catalogue)
    store.register("cdc.shop.users-value", avro(ID, EMAIL))
    if not is_marked_first:
        assert not catalogue.topics.get("cdc.shop.users").pii_misplaced
        mark_email(catalogue)
    assert [topic.pii_misplaced for topic in catalogue.topics.every()] == [True]
    assert register(catalogue, avro(ID, EMAIL)).topic == "pii-cdc.shop.users-v2"


@pytest.mark.parametrize(
    ("namespace", "source"), [("cdc.shop", "a.b"), ("cdc.shop", "users-v2"), ("cdc.raw.shop", "users"), ("a..b", "c")]
)
def test_a_topic_that_would_be_read_as_another_sources_is_refused(
    catalogue: Catalogue, namespace: str, source: str
) -> None:
    """Rights are given by namespace, which a topic's name says."""
    with pytest.raises(CatalogueError, match="would be read as"):
        register(catalogue, avro(ID), namespace=namespace, source=source)
    assert catalogue.namespaces.every() == []


def test_a_disabled_topic_gets_no_new_schema(catalogue: Catalogue) -> None:
    register(catalogue, avro(ID, NAME))
    catalogue.topics.set_status("cdc.shop.users", Status.DISABLED, by="test")
    made = register(catalogue, avro(ID, NAME))
    assert (made.topic, made.rule) == ("cdc.shop.users-v2", "topic-disabled")


@pytest.mark.parametrize("status", [Status.READ_ONLY, Status.DISABLED])
def test_a_schema_that_may_not_be_written_is_refused(catalogue: Catalogue, status: Status) -> None:
    made = register(catalogue, avro(ID, NAME))
    catalogue.topics.set_schema_status(made.topic, made.schema_id, status, by="test")
    with pytest.raises(CatalogueError, match=status.value) as caught:
        register(catalogue, avro(ID, NAME))
    assert caught.value.refusal is Refusal.CONFLICT


def test_a_cql_table_joins_the_topic_that_the_materializer_registered(catalogue: Catalogue, store: Store) -> None:
    """Its schemas are those that the materializer registers, so the ids are the same."""
    made = register(catalogue, CQL, format="cql")
    assert made.topic == "cdc.shop.orders"
    assert made.key_schema_id is not None
    value, key = (catalogue.schemas.get(schema_id).text for schema_id in (made.schema_id, made.key_schema_id))
    assert store.register("cdc.shop.orders-value", value).schema_id == made.schema_id
    assert store.register("cdc.shop.orders-key", key).schema_id == made.key_schema_id
    assert catalogue.sources.get("cdc.shop", "orders").doc == "what was bought"
    assert [element.path for element in catalogue.schemas.elements(made.schema_id) if element.is_key] == ["id", "line"]


def test_a_cql_table_after_the_materializer(catalogue: Catalogue, store: Store, tmp_path: Path) -> None:
    other = Database(f"sqlite:///{tmp_path / 'other.db'}")
    made = register(Catalogue(other, Rules()), CQL, format="cql")
    assert made.key_schema_id is not None
    for part, schema_id in (("key", made.key_schema_id), ("value", made.schema_id)):
        store.register(f"cdc.shop.orders-{part}", Catalogue(other, Rules()).schemas.get(schema_id).text)
    other.close()
    joined = register(catalogue, CQL, format="cql")
    assert (joined.topic, joined.is_new_schema) == ("cdc.shop.orders", False)
    wider = register(catalogue, CQL.replace("note text", "note text, more int"), format="cql")
    assert (wider.topic, wider.rule) == ("cdc.shop.orders", "compatible")
    other_key = register(catalogue, CQL.replace("PRIMARY KEY (id, line)", "PRIMARY KEY (line, id)"), format="cql")
    assert (other_key.topic, other_key.rule) == ("cdc.shop.orders-v2", "primary-key")


def test_check_decides_like_register_and_changes_nothing(catalogue: Catalogue) -> None:
    register(catalogue, avro(ID, NAME))
    changes = catalogue.history.changes()
    for text in (avro(ID, NAME), avro(ID), avro({"name": "id", "type": "string"}), avro(ID, NAME, key=("name",))):
        description = Description("cdc.shop", "avro", text)
        verdict = catalogue.registering.check(description)
        assert catalogue.history.changes() == changes
        made = register(catalogue, text)
        assert (verdict.is_new_topic, verdict.rule) == (made.is_new_topic, made.rule)
        changes = catalogue.history.changes()


def test_a_namespace_may_require_documentation(catalogue: Catalogue) -> None:
    text = avro({**ID, "doc": "a number"}, NAME)
    with pytest.raises(CatalogueError, match=r"the doc of the source, an owner .*, the doc of name") as caught:
        register(catalogue, text, namespace="strict.shop")
    assert caught.value.refusal is Refusal.INVALID
    assert catalogue.namespaces.every() == []
    documented = {"name": FieldDocumentation("as on the bell")}
    made = register(catalogue, text, namespace="strict.shop", owner="team", doc="people", fields=documented)
    assert made.is_new_schema


@pytest.mark.parametrize(
    ("format_", "text", "problem"),
    [
        ("avro", "{", "not JSON"),
        ("avro", '"string"', "names no source"),
        ("cql", "CREATE TABLE a.b (id int PRIMARY KEY)", "not in the keyspace"),
        ("cql", "CREATE TABLE b (id int)", "primary key of nothing"),
        ("cql", "CREATE TABLE b (id thing PRIMARY KEY)", "unknown user type"),
        ("cql", "DROP TABLE b", "CREATE is expected"),
        ("mysql", "CREATE TABLE b (g GEOMETRY)", "has no Avro type"),
        ("mysql", "SELECT 1", "0 CREATE TABLE"),
        ("postgresql", "CREATE TABLE b (a int); COMMENT ON COLUMN b.x IS 'y'", "b.x"),
        ("nothing", "", "no format"),
    ],
)
def test_what_cannot_be_converted_is_refused(catalogue: Catalogue, format_: str, text: str, problem: str) -> None:
    with pytest.raises(CatalogueError, match=problem):
        register(catalogue, text, format=format_)
    assert catalogue.namespaces.every() == []


def test_a_record_in_many_fields_is_no_bomb(catalogue: Catalogue) -> None:
    inner = {"type": "record", "name": "B", "fields": [{"name": f"b{n}", "type": "int"} for n in range(2000)]}
    text = avro(ID, {"name": "x", "type": inner}, *({"name": f"a{n}", "type": "B"} for n in range(2000)))
    for act in (catalogue.registering.check, lambda wanted: catalogue.registering.register(wanted, by="test")):
        with pytest.raises(CatalogueError, match="more than 20,000 fields") as caught:
            act(Description("cdc.shop", "avro", text))
        assert caught.value.refusal is Refusal.INVALID
