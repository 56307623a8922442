"""Topics that topic files want to be loaded: their tables are made as the files say, and follow them."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import Managed
from tests.support.stream_runtime.known_topics import KnownTopics
from warehouse.job import planner
from warehouse.job.definitions import each_definition
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.settings import Settings, WarehouseSettings
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, MARKED


class Registry:
    """SchematizerClient.managed, as far as it is used."""

    def __init__(self) -> None:
        self.notes: dict[str, dict[str, Any]] = {}

    def managed(self, deployment: str, kind: str) -> list[Managed]:
        assert (deployment, kind) == ("prod", "warehouse")
        return [Managed(kind=kind, name=name, content=content) for name, content in self.notes.items()]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    monkeypatch.setattr(SchematizerClient, "of_settings", lambda _settings: made)
    monkeypatch.setattr(planner, "Topics", KnownTopics)
    return made


def settings(**own: Any) -> Settings:  # noqa: ANN401 - of any kind
    return Settings(warehouse=WarehouseSettings(deployment="prod", name="main", **own))


def test_a_new_file_is_loaded_as_it_says_with_no_other_step(registry: Registry) -> None:
    registry.notes = {"shop.plain other": {"form": "current"}, "shop.absent main": {"form": "current"}}
    now = [0.0]
    own = settings(topics=["cdc.*"], form="changes", personal_data="leave_out")
    job = TopicPlanner(job_of(own), lambda: now[0])
    plan = job.plan_batch()
    assert plan.definitions == {"cdc.shop.users": (CHANGES, "leave_out")}, "the others are of files or not there"
    registry.notes["shop.orders main"] = {"form": "history", "deletes": "remove", "personal_data": "load"}
    now[0] = 100.0
    plan = job.plan_batch()
    assert plan.definitions["shop.orders"] == (HISTORY, "load")
    assert plan.definitions["cdc.shop.users"] == (CHANGES, "leave_out")
    assert set(plan.shapes) == {"cdc.shop.users", "shop.orders"}
    assert str(plan.definitions["shop.orders"].table("shop.orders", "topics")) == "shop.orders__history"


def test_a_changed_file_changes_the_definition(registry: Registry) -> None:
    note = registry.notes["shop.orders main"] = {"form": "current", "deletes": "remove", "personal_data": "refuse"}
    now = [0.0]
    job = TopicPlanner(job_of(settings(deletes="mark")), lambda: now[0])
    assert job.plan_batch().definitions == {"shop.orders": (CURRENT, "refuse")}, "the file counts before the settings"
    note["deletes"] = "mark"
    now[0] = 100.0
    assert job.plan_batch().definitions == {"shop.orders": (MARKED, "refuse")}
    registry.notes.clear()
    now[0] = 200.0
    assert job.plan_batch().shapes == {}


def test_commands_find_the_table_that_the_file_chose(registry: Registry) -> None:
    registry.notes["shop.orders main"] = {"form": "changes", "deletes": "remove", "personal_data": "load"}
    made = each_definition(settings(), ["shop.orders", "shop.plain"])
    assert made == {"shop.orders": (CHANGES, "load"), "shop.plain": (CURRENT, "refuse")}


@pytest.mark.parametrize(("own", "lone"), [({"deployment": "prod"}, "deployment"), ({"name": "main"}, "name")])
def test_a_deployment_needs_a_name(own: dict[str, Any], lone: str) -> None:
    whole = Settings(warehouse=WarehouseSettings(**own))
    assert [conflict.name for conflict in whole.warehouse.conflicts(whole)] == [f"warehouse.{lone}"]
