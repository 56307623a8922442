"""The driver's plans, with a registry in memory and topics that are said to be there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime.records import TopicShape
from tests.support.transformer.definitions import transformer
from tests.support.transformer.memory_catalogue import VALUE_ID, MemoryCatalogue
from tests.support.transformer.orders import ENVELOPE, TOPIC
from transformer.cli import main
from transformer.definition import CatalogueSource
from transformer.job import planner, run
from transformer.job.planner import StreamPlanner
from transformer.records import Definitions
from transformer.settings import TransformerSettings

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

STEPS = '[[transformer.step]]\nkind = "mask"\ncolumns = ["email"]\nhow = "drop"'
PII = STEPS.replace('["email"]', '"pii"')
NAME = f"one/{TOPIC}"
AWAY = CdcError(Code.REGISTRY_UNREACHABLE, "It does not answer.", "Start it.")


class Topics:
    """The shapes of the topics that are there."""

    shapes: dict[str, TopicShape] = {}  # noqa: RUF012 - of the test that runs

    def __init__(self, _settings: KafkaSettings) -> None: ...

    def each_shape(self, topics: Collection[str]) -> dict[str, TopicShape | CdcError]:
        missing = CdcError(Code.KAFKA_UNREACHABLE, "It is not there.", "")
        return {topic: self.shapes.get(topic, missing) for topic in topics}


class Scene:
    """A planner of transformers `one` and `two` with these steps."""

    def __init__(self, *steps: str) -> None:
        self.now = 0.0
        self.catalogue = MemoryCatalogue()
        made = tuple(
            transformer(given).model_copy(
                update={"name": name, "source": CatalogueSource(namespace="cdc.shop", source=name)}
            )
            for name, given in zip(("one", "two"), steps or [STEPS], strict=False)
        )
        definitions = Definitions(made, KafkaSettings(), RegistrySettings(), TransformerSettings(group_id="g"))
        self.planner = StreamPlanner(definitions, self.catalogue, lambda: self.now)
        Topics.shapes = {TOPIC: TopicShape(2, "id")}

    def streams(self, seconds: float = 10.0) -> dict[str, tuple[int, frozenset[str]]]:
        """The streams of the next plan: the newest schema and what is personal."""
        self.now += seconds
        return {name: (stream.newest_id, stream.pii) for name, stream in self.planner.plan_batch().streams.items()}


@pytest.fixture(autouse=True)
def _topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "Topics", Topics)


def test_a_source_is_planned_once_its_topic_is_there() -> None:
    scene = Scene()
    scene.catalogue.topic_names = []
    assert scene.streams() == {}
    scene.catalogue.topic_names = [TOPIC]
    Topics.shapes = {}
    assert scene.streams() == {}
    Topics.shapes = {TOPIC: TopicShape(2, "id")}
    assert scene.streams() == {NAME: (VALUE_ID, frozenset())}
    assert not scene.planner.errors


def test_what_the_registry_has_said_goes_on_while_it_is_away() -> None:
    scene = Scene()
    before = scene.streams()
    scene.catalogue.error = AWAY
    scene.planner.retry([NAME])
    assert scene.streams() == before
    assert not scene.planner.errors
    assert not scene.planner.pending


def test_a_new_schema_and_new_flags_are_followed() -> None:
    scene = Scene(PII)
    scene.streams()
    scene.catalogue.schemas[7] = ENVELOPE
    scene.catalogue.value_id, scene.catalogue.pii = 7, frozenset({"email"})
    assert scene.streams(seconds=1.0) == {NAME: (VALUE_ID, frozenset())}
    assert scene.streams() == {NAME: (7, frozenset({"email"}))}


def test_a_schema_that_does_not_fit_stops_the_stream_until_it_is_tried_again() -> None:
    scene = Scene()
    scene.streams()
    scene.catalogue.schemas[7] = json.loads(json.dumps(ENVELOPE).replace('"email"', '"mail"'))
    scene.catalogue.value_id = 7
    scene.streams()
    assert scene.planner.errors[NAME].code is Code.TRANSFORM_STEP
    scene.catalogue.schemas[8] = ENVELOPE
    scene.catalogue.value_id = 8
    scene.streams()
    assert NAME in scene.planner.errors
    scene.planner.retry([NAME])
    assert scene.streams() == {NAME: (8, frozenset())}
    assert not scene.planner.errors


def test_a_topic_that_changes_its_shape_stops_until_it_is_tried_again() -> None:
    scene = Scene()
    scene.streams()
    Topics.shapes = {TOPIC: TopicShape(3, "id")}
    scene.streams(seconds=0.1)
    assert scene.planner.errors[NAME].code is Code.TRANSFORM_SOURCE
    scene.planner.retry([NAME])  # the committed offsets say then whether it fits
    assert scene.planner.plan_batch().streams[NAME].shape.partitions == 3


def test_a_topic_that_stays_away_stops_until_it_is_back() -> None:
    scene = Scene()
    before = scene.streams()
    there, Topics.shapes = Topics.shapes, {}
    assert scene.streams() == before
    assert not scene.planner.errors, "a broker may have just started"
    scene.streams(seconds=31.0)
    assert {name: error.code for name, error in scene.planner.errors.items()} == {NAME: Code.KAFKA_UNREACHABLE}
    scene.planner.retry([NAME])
    scene.streams()
    assert NAME in scene.planner.errors
    Topics.shapes = there
    scene.planner.retry([NAME])
    assert scene.streams() == before
    assert not scene.planner.errors


MISFIT = '[[transformer.step]]\nkind = "docs"\ncolumns = { nothing = "x" }'


def test_a_step_is_checked_at_the_start() -> None:
    scene = Scene(MISFIT)
    for check in (scene.planner.check_steps, scene.planner.check_any):
        with pytest.raises(
            CdcError, match=r'transformer "one", step 1 \(docs\) does not fit the schema of cdc.shop.orders'
        ):
            check()


def test_a_check_names_those_without_a_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    catalogue = MemoryCatalogue()
    catalogue.topic_names = []
    monkeypatch.setattr(run, "open_catalogue", lambda _: catalogue)
    file = tmp_path / "transformers.toml"
    places = [f'{{ namespace = "cdc.shop", source = "{name}" }}' for name in ("order", "orders-2")]
    file.write_text(f'[[transformer]]\nname = "one"\nsource = {places[0]}\ntarget = {places[1]}\n{MISFIT}')
    done = CliRunner().invoke(main, ["check", str(file)])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "ok, except for those without a source: one")


def test_one_that_does_not_fit_does_not_keep_the_others_from_starting() -> None:
    scene = Scene(STEPS, MISFIT)
    with pytest.raises(CdcError):
        scene.planner.check_steps()
    scene.planner.check_any()
    assert scene.streams().keys() == {NAME}
    assert {name: error.code for name, error in scene.planner.errors.items()} == {f"two/{TOPIC}": Code.TRANSFORM_STEP}
    scene.catalogue.error = AWAY
    with pytest.raises(CdcError, match="It does not answer"):
        scene.planner.check_any()


def test_one_whose_source_is_refused_stops_alone() -> None:
    scene = Scene(STEPS, PII)
    scene.catalogue.refused = {"one"}
    streams = scene.streams()
    unknown = "one/cdc.shop.one"
    assert {name: error.code for name, error in scene.planner.errors.items()} == {unknown: Code.REGISTRY_REFUSED}
    assert streams.keys() == {f"two/{TOPIC}"}
    scene.catalogue.refused = {"two"}
    scene.planner.retry([unknown])
    assert scene.streams().keys() == {NAME, f"two/{TOPIC}"}
    assert scene.planner.errors.keys() == {f"two/{TOPIC}"}
