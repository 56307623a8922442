"""Plans without servers: what the files ask for, compared with what is there and with what was made before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from schematizer.topic_files.files.reading import read_repository
from schematizer.topic_files.planning.differences import PENDING, Action, Plan, Step, make_plan, noted
from schematizer.topic_files.planning.drift_metrics import write_drift_metrics
from schematizer.topic_files.planning.order import missing_earlier
from schematizer.topic_files.planning.reports import as_json, as_markdown, as_text
from schematizer.topic_files.planning.rights import Right
from schematizer.topic_files.planning.things import NOTED, Found, Kept, Kind, Thing
from schematizer.topic_files.planning.wanted import wishes
from tests.support.schematizer.topic_repository import CATALOGUE, TOPIC, schema, write_repository, write_topic

if TYPE_CHECKING:
    from pathlib import Path

    from schematizer.topic_files.planning.things import Value

ORDERS = "staging.shop.orders"
TOPIC_THING = Thing(Kind.TOPIC, ORDERS)
KAFKA_DEFAULTS: dict[str, Value] = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "min.insync.replicas": "1",
}


class World:
    """The servers, as applies would leave them."""

    def __init__(self, root: Path, environment: str = "staging") -> None:
        self.root = root
        self.environment = environment
        self.found: dict[Thing, Found] = {}
        self.kept: dict[Thing, Kept] = {}

    def plan(self) -> Plan:
        return make_plan(self.environment, wishes(read_repository(self.root), self.environment), self.found, self.kept)

    def apply(self) -> None:
        for step in self.plan().steps:
            if step.wanted is not None:
                self.found[step.thing] = self._there(step)
                self.kept[step.thing] = Kept(dict(step.wanted.content), dict(step.wanted.about))
            elif step.action in (Action.DELETE, Action.FORGET):
                self.found.pop(step.thing, None)
                self.kept.pop(step.thing, None)

    def by_hand(self, thing: Thing, **content: Value) -> None:
        """Change properties; None removes one."""
        new = {name: value for name, value in {**self.found[thing].content, **content}.items() if value is not None}
        self.found[thing] = Found(new, {**KAFKA_DEFAULTS, **new}, self.found[thing].topic)

    @staticmethod
    def _there(step: Step) -> Found:
        assert step.wanted is not None
        topic = step.wanted.topic.name if step.wanted.topic else ""
        return Found(dict(step.wanted.content), {**KAFKA_DEFAULTS, **step.wanted.content}, topic)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(write_repository(tmp_path))
    made.apply()
    assert made.plan().steps == []
    return made


def put(world: World, text: str, *schemas: str, environment: str = "staging") -> None:
    write_topic(world.root, environment, "orders", text, schemas)


def dangers(world: World) -> list[str]:
    return [danger.name for step in world.plan().steps for danger in step.dangers]


def test_an_empty_cluster_gets_all(tmp_path: Path) -> None:
    world = World(write_repository(tmp_path, 2))
    plan = world.plan()
    assert {step.action for step in plan.steps} == {Action.CREATE}
    [topic] = [step for step in plan.steps if step.thing == TOPIC_THING]
    assert {one.name: one.after for one in topic.properties} == {
        "partitions": 2,
        "replication_factor": 1,
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
    }
    names = [step.thing.name for step in plan.steps if step.thing.kind is Kind.RIGHT]
    assert sorted(name for name in names if ORDERS in name.split()) == [
        f"User:billing read topic {ORDERS}",
        f"User:web write topic {ORDERS}",
    ]
    assert "User:billing read group billing" in names
    kinds = [step.thing.kind for step in plan.steps]
    assert kinds == sorted(kinds, key=list(Kind).index)
    # Quotas are of users: both topics, and both environments of the cluster.
    [web] = [step for step in plan.steps if step.thing == Thing(Kind.QUOTA, "web")]
    assert {one.name: one.after for one in web.properties} == {"producer_byte_rate": 4_000_000.0}


def test_what_was_applied_is_no_change(world: World) -> None:
    assert "0 to create, 0 to change, 0 to delete, 0 refused, 0 changed by hand" in list(as_text(world.plan()))[-1]


@pytest.mark.parametrize(
    ("danger", "text"),
    [
        ("shorter-retention", "retention_hours = 1"),
        ("fewer-partitions", "partitions = 1"),
        ("replication-factor", "replication_factor = 2"),
        ("compaction-on", 'cleanup = "compact"'),
    ],
)
def test_a_dangerous_change_is_refused(world: World, danger: str, text: str) -> None:
    put(world, TOPIC.replace('owner = "shop"', f'owner = "shop"\n{text}'))
    assert danger in dangers(world)
    refused = world.plan().refused(())
    assert danger in {one.name for one in refused}
    assert all(one.loss for one in refused)
    is_left = danger == "replication-factor"
    assert bool(world.plan().refused([one.flag for one in refused])) == is_left
    assert world.plan().refused([f"{danger}=another.topic"]) == refused, "the flag names the topic"


def test_what_loses_nothing_is_not_refused(world: World) -> None:
    text = 'retention_hours = -1\npartitions = 9\nconfig = { "max.message.bytes" = 2000000 }'
    put(world, TOPIC.replace('owner = "shop"', f'owner = "shop"\n{text}'))
    [step] = [step for step in world.plan().steps if step.is_change]
    assert {one.name: (one.before, one.after) for one in step.properties} == {
        "max.message.bytes": (None, "2000000"),
        "partitions": (2, 9),
        "retention.ms": ("604800000", "-1"),
    }
    assert step.dangers == []
    assert not step.is_drift


def test_partitions_and_compaction_of_a_keyed_topic(tmp_path: Path) -> None:
    keyed = TOPIC.replace('typology = "event"', 'typology = "changelog"')
    world = World(write_repository(tmp_path))
    put(world, keyed)
    world.apply()
    put(world, keyed.replace('owner = "shop"', 'owner = "shop"\npartitions = 4'))
    assert dangers(world) == ["more-partitions"]
    for policy in ("delete", "compact,delete"):
        put(world, keyed.replace('owner = "shop"', f'owner = "shop"\ncleanup = "{policy}"'))
        assert dangers(world) == ["compaction-off"], policy


def test_retention_of_bytes_and_copies_in_sync(world: World) -> None:
    text = 'config = { "retention.bytes" = 5 }\nmin_in_sync_replicas = 1'
    put(world, TOPIC.replace('owner = "shop"', f'owner = "shop"\n{text}'))
    assert dangers(world) == ["shorter-retention"]
    world.apply()
    world.by_hand(TOPIC_THING, **{"min.insync.replicas": "2"})
    assert dangers(world) == ["fewer-in-sync"]


def test_a_topic_without_a_file_is_deleted_by_a_flag_alone(world: World) -> None:
    for path in sorted((world.root / "shop" / "orders" / "staging").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    plan = world.plan()
    actions = {step.thing: step.action for step in plan.steps}
    assert actions[TOPIC_THING] is Action.DELETE
    assert [danger.flag for danger in plan.refused(())] == [f"delete-topic={ORDERS}"]
    assert {action for thing, action in actions.items() if thing.kind is Kind.SCHEMA} == {Action.FORGET}
    # prod, on the same cluster, still has the group and the users.
    assert actions[Right("User:billing", "read", "group", "billing").thing] is Action.FORGET
    assert actions[Thing(Kind.QUOTA, "web")] is Action.FORGET
    assert actions[Right("User:web", "write", "topic", ORDERS).thing] is Action.DELETE
    world.apply()
    assert world.plan().steps == []


def test_only_what_was_made_from_the_files_is_deleted(world: World) -> None:
    other = Thing(Kind.TOPIC, "other")
    world.found[other] = Found({"partitions": 1}, topic="other")
    foreign = Right("User:mallory", "read", "topic", ORDERS)
    world.found[foreign.thing] = Found(foreign.content, topic=ORDERS)
    [step] = world.plan().steps
    assert (step.thing, step.action, step.is_drift) == (foreign.thing, Action.FOREIGN, True)
    assert step.about["owner"] == "shop"
    assert not step.is_change


def test_drift_names_what_was_applied_and_the_owner(world: World) -> None:
    world.by_hand(TOPIC_THING, **{"retention.ms": "3600000", "max.message.bytes": "7"})
    del world.found[Right("User:web", "write", "topic", ORDERS).thing]
    plan = world.plan()
    assert {step.thing.kind for step in plan.drift()} == {Kind.TOPIC, Kind.RIGHT}
    text = "\n".join(as_text(plan))
    assert f"~ topic {ORDERS}    # changed by hand; owner: shop (#shop)" in text
    assert "retention.ms: 3600000 -> 604800000    # by hand: 604800000 was applied" in text
    assert "max.message.bytes: 7 -> (none)    # by hand: (none) was applied" in text
    assert f"+ right User:web write topic {ORDERS}    # removed by hand; owner: shop (#shop)" in text
    assert plan.refused(()) == [], "a longer retention loses nothing"
    # A change of the file is none of hands.
    world.apply()
    put(world, TOPIC.replace('owner = "shop"', 'owner = "shop"\nretention_hours = 999'))
    assert world.plan().drift() == []


def test_what_is_there_already_is_adopted(world: World) -> None:
    world.kept.clear()
    plan = world.plan()
    assert {step.action for step in plan.steps} == {Action.NOTE}
    assert plan.changes() == []
    world.by_hand(TOPIC_THING, partitions=1)
    [step] = world.plan().changes()
    assert not step.is_drift, "nothing was applied before"


def test_what_an_apply_that_was_killed_leaves(world: World) -> None:
    note = world.kept[TOPIC_THING]
    world.kept[TOPIC_THING] = Kept(note.content, {**note.about, PENDING: "true"})
    assert [(step.thing, step.action) for step in world.plan().steps] == [(TOPIC_THING, Action.NOTE)]
    del world.found[TOPIC_THING]
    [step] = world.plan().steps
    assert (step.action, step.is_drift) == (Action.CREATE, False)


def test_clients_may_say_another_frequency(world: World) -> None:
    [producer] = [thing for thing in world.found if thing.kind is Kind.PRODUCER]
    world.by_hand(producer, seconds=5)
    assert world.plan().steps == []
    put(world, TOPIC.replace('service = "web"', 'service = "web"\nseconds = 60'))
    [step] = world.plan().steps
    assert [(one.name, one.after) for one in step.properties] == [("seconds", 60)]


def test_a_schema_that_is_gone_is_refused(world: World) -> None:
    (world.root / "shop" / "orders" / "staging" / "schemas" / "2.avsc").unlink()
    assert dangers(world) == ["delete-schema"]
    hand = Thing(Kind.SCHEMA, f"{ORDERS}-value 0123456789abcdef")
    world.found[hand] = Found({}, topic=ORDERS)
    assert [step.thing for step in world.plan().drift()] == [hand]


def test_staging_comes_first(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    repository = read_repository(root)
    staging, prod = World(root), wishes(repository, "prod")
    before = make_plan("prod", prod, {}, {}, missing_earlier(repository, "prod", staging.kept))
    assert {danger.flag for danger in before.refused(())} == {"before-staging=prod.shop.orders"}
    assert len(before.refused(())) == 3, "the topic and two schemas"
    staging.apply()
    after = make_plan("prod", prod, {}, {}, missing_earlier(repository, "prod", staging.kept))
    assert after.refused(()) == []
    assert missing_earlier(repository, "staging", {}) is None


def test_programs_of_the_pipeline_get_rights(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    programs = '[archive]\nprincipal = "User:archive"\ngroup = "archive"\n'
    programs += '[warehouses.main]\nprincipal = { staging = "User:CN=loader" }\ngroup = "loader"\ndestination = "x"\n'
    programs += '[services.tx]\nowner = "shop"\nprincipal = "User:tx"\ntransactional_ids = ["tx-"]\n'
    (root / "catalogue.toml").write_text(CATALOGUE + programs)
    text = TOPIC.replace('service = "web"', 'service = "tx"') + '[archive]\n[[warehouses]]\nwarehouse = "main"\n'
    for environment in ("staging", "prod"):
        write_topic(root, environment, "orders", text)
    names = {thing.name for thing in wishes(read_repository(root), "staging").own if thing.kind is Kind.RIGHT}
    assert {
        f"User:archive read topic {ORDERS}",
        f"User:archive describe_configs topic {ORDERS}",
        "User:archive read group archive",
        f"User:CN=loader read topic {ORDERS}",
        "User:CN=loader read group loader",
        "User:tx write transactional_id tx- prefixed",
    } <= names
    prod = {thing.name for thing in wishes(read_repository(root), "prod").own if thing.kind is Kind.RIGHT}
    assert not [name for name in prod if "loader" in name], "it has no principal there"


def test_forms_of_the_plan(world: World) -> None:
    put(world, TOPIC.replace('owner = "shop"', 'owner = "shop"\nretention_hours = 1'), schema())
    plan = world.plan()
    flag = f"shorter-retention={ORDERS}"
    markdown = as_markdown(plan)
    assert markdown.startswith("### Plan for staging: 0 to create, 1 to change, 0 to delete, 1 refused")
    assert f"! topic {ORDERS}" in markdown
    assert f"--allow {flag}" in markdown
    said = json.loads(as_json(plan))
    assert said["refused"] == [flag]
    assert json.loads(as_json(plan, [flag]))["refused"] == []
    assert said["steps"][0]["properties"] == [
        {"name": "retention.ms", "before": "604800000", "after": "3600000", "is_drift": False}
    ]
    assert any("allowed: shorter-retention" in line for line in as_text(plan, [flag]))


def test_drift_as_metrics(world: World, tmp_path: Path) -> None:
    world.by_hand(TOPIC_THING, partitions=9)
    world.by_hand(Thing(Kind.QUOTA, "web"), producer_byte_rate=1.0)
    file = tmp_path / "topics.prom"
    write_drift_metrics(world.plan(), file)
    text = file.read_text()
    name = 'cdc_topics_changed_by_hand{environment="staging",kind='
    assert f'{name}"topic",owner="shop"}} 1.0' in text
    assert f'{name}"quota",owner="catalogue"}} 1.0' in text
    assert f'{name}"right",owner="catalogue"}} 0.0' in text
    assert "cdc_topics_drift_checked_timestamp_seconds" in text


def test_what_programs_do_with_a_topic_is_planned(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    programs = (
        '[archive]\nprincipal = "User:archive"\ngroup = "archive"\n[warehouses.main]\nprincipal = "User:loader"\n'
    )
    (root / "catalogue.toml").write_text(CATALOGUE + programs + 'group = "loader"\ndestination = "x"\n')
    text = TOPIC + '[archive]\nbucket = "day"\nevent_time = ["event_time", "at"]\n[[warehouses]]\nwarehouse = "main"\n'
    world = World(root)
    put(world, text)
    plan = world.plan()
    made = {step.thing: {one.name: one.after for one in step.properties} for step in plan.steps}
    archive, table = Thing(Kind.ARCHIVE, ORDERS), Thing(Kind.WAREHOUSE, f"{ORDERS} main")
    assert made[archive] == {"layout": "iceberg", "bucket": "day", "event_time": "event_time|at", "format": "avro"}
    assert made[table] == {"form": "current", "deletes": "remove", "personal_data": "refuse"}
    assert list(made)[-2:] == [archive, table], "after the programs' rights"
    world.apply()
    world.found = {thing: one for thing, one in world.found.items() if thing.kind not in NOTED} | noted(world.kept)
    assert world.plan().steps == []
    put(world, text.replace('bucket = "day"', 'bucket = "hour"') + 'form = "history"\n')
    changed = {step.thing: [one.name for one in step.properties] for step in world.plan().steps}
    assert changed == {archive: ["bucket"], table: ["form"]}
    put(world, TOPIC)
    assert {step.thing: step.action for step in world.plan().steps if step.thing.kind in NOTED} == {
        archive: Action.DELETE,
        table: Action.DELETE,
    }
    assert dangers(world) == ["archive-off"]


def test_a_note_that_was_only_begun_is_made_again(tmp_path: Path) -> None:
    world = World(write_repository(tmp_path))
    thing = Thing(Kind.ARCHIVE, ORDERS)
    assert noted({thing: Kept({}, {PENDING: "true"})}) == {}
    (world.root / "catalogue.toml").write_text(CATALOGUE + '[archive]\nprincipal = "User:a"\ngroup = "a"\n')
    put(world, TOPIC + "[archive]\n")
    world.kept[thing] = Kept({}, {PENDING: "true"})
    [step] = [step for step in world.plan().steps if step.thing == thing]
    assert (step.action, step.is_drift) == (Action.CREATE, False)


SOURCE = 'namespace = "cdc.shop"\nsource = "users"\nowner = "shop"\n[fields.name]\ndoc = "Their name."\npii = true\n'


def put_source(world: World, text: str) -> None:
    folder = world.root / "shop" / "users" / "staging"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.toml").write_text(text)


def test_a_source_without_a_topic_file_is_documented(world: World) -> None:
    put_source(world, SOURCE)
    thing = Thing(Kind.SOURCE, "cdc.shop/users")
    world.found[thing] = Found({"doc": "Cassandra's comment", "owner": None})
    [step] = world.plan().steps
    assert (step.thing, step.action, step.is_drift) == (thing, Action.CHANGE, False)
    assert {one.name: one.after for one in step.properties} == {
        "owner": "shop",
        "fields.name.doc": "Their name.",
        "fields.name.pii": True,
    }, "a doc that the file does not have stays"
    world.apply()
    world.by_hand(thing, owner="other")
    [step] = world.plan().drift()
    assert [one.name for one in step.properties] == ["owner"]
    world.apply()
    put_source(world, SOURCE.replace("pii = true", "pii = false"))
    assert dangers(world) == ["not-personal"]
    (world.root / "shop" / "users" / "staging" / "source.toml").unlink()
    [step] = world.plan().steps
    assert step.action is Action.FORGET, "it stays documented"
    assert step.dangers == []


def test_a_mark_that_goes_is_refused(world: World) -> None:
    personal = TOPIC.replace('owner = "shop"', 'owner = "shop"\nname = "staging.shop.orders"')
    put(world, personal + "[fields.city]\npii = true\n")
    world.apply()
    put(world, personal)
    [danger] = world.plan().refused(())
    assert danger.flag == f"not-personal={ORDERS}"
    assert "city" in danger.loss
