"""The lease of a deployment, and the notes of what was made from topic files."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.registry.views import Managed
from schematizer.catalogue import deployments as module
from schematizer.catalogue.deployments import Deployments, Thing
from schematizer.catalogue.rules import Rules
from schematizer.errors import CatalogueError
from schematizer.model.base import now
from schematizer.model.database import opened
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        yield Catalogue(database, Rules())


@pytest.fixture
def deployments(catalogue: Catalogue) -> Deployments:
    return catalogue.deployments


def thing(name: str, **content: object) -> Managed:
    return Managed(kind="topic", name=name, content=content)


def test_one_holder_at_a_time(deployments: Deployments, monkeypatch: pytest.MonkeyPatch) -> None:
    first = deployments.lease("prod", "one", 60, None, by="a")
    with pytest.raises(CatalogueError, match="one applies prod, until"):
        deployments.lease("prod", "two", 60, None, by="b")
    assert deployments.lease("staging", "two", 60, None, by="b").token == 1, "another deployment"
    renewed = deployments.lease("prod", "one", 90, first.token, by="a")
    assert renewed.token == first.token
    assert renewed.expires_at > first.expires_at
    later = now() + timedelta(seconds=100)
    monkeypatch.setattr(module, "now", lambda: later)
    second = deployments.lease("prod", "two", 60, None, by="b")
    assert second.token > first.token
    with pytest.raises(CatalogueError, match="has ended"):
        deployments.lease("prod", "one", 60, first.token, by="a")
    with pytest.raises(CatalogueError, match="has ended"):
        deployments.change("prod", first.token, [thing("t")], [], by="a")
    deployments.release("prod", first.token, by="a")  # it is another's now
    with pytest.raises(CatalogueError, match="two applies prod"):
        deployments.lease("prod", "three", 60, None, by="c")
    deployments.release("prod", second.token, by="b")
    assert deployments.lease("prod", "three", 60, None, by="c").holder == "three"


def test_what_was_made_is_kept_and_recorded(catalogue: Catalogue) -> None:
    deployments = catalogue.deployments
    token = deployments.lease("prod", "one", 60, None, by="ci").token
    deployments.change("prod", token, [thing("a", partitions=1), thing("b")], [], by="ci")
    deployments.change("prod", token, [thing("a", partitions=2)], [Thing("topic", "b"), Thing("topic", "c")], by="ci")
    deployments.change("prod", token, [thing("a", partitions=2)], [], by="someone")
    [kept] = deployments.managed("prod")
    assert (kept.name, kept.content, kept.changed_by) == ("a", {"partitions": 2}, "ci")
    assert deployments.managed("prod", "quota") == []
    assert deployments.managed("staging") == []
    changes = [(change.action, change.about) for change in catalogue.history.changes(0, None, 100)]
    assert changes == [
        ("lease deployment", "prod"),
        ("add managed", "prod: topic a"),
        ("add managed", "prod: topic b"),
        ("change managed", "prod: topic a"),
        ("remove managed", "prod: topic b"),
    ]


@pytest.mark.parametrize(
    ("name", "holder", "seconds"), [("a b", "x", 1), ("a" * 65, "x", 1), ("a", "", 1), ("a", "x", 4000)]
)
def test_a_lease_that_cannot_be(deployments: Deployments, name: str, holder: str, seconds: int) -> None:
    with pytest.raises(CatalogueError):
        deployments.lease(name, holder, seconds, None, by="a")


def test_the_files_that_document_sources_of_a_namespace(deployments: Deployments) -> None:
    token = deployments.lease("prod", "ci", 60, None, by="a").token
    about = {"path": "a/topic.toml", "source": "prod.shop/orders"}
    put = [
        Managed(kind="entry", name="prod.shop.orders", content={}, about=about),
        Managed(kind="source", name="prod.shop/users", content={}, about={"path": "b/source.toml"}),
        Managed(kind="source", name="other/users", content={}, about={"path": "c/source.toml"}),
        Managed(kind="topic", name="prod.shop/stock", content={}),
    ]
    deployments.change("prod", token, put, [], by="a")
    found = deployments.documenting("prod.shop")
    assert {source: one.about["path"] for source, one in found.items()} == {
        "orders": "a/topic.toml",
        "users": "b/source.toml",
    }
    assert deployments.documenting("none") == {}


def test_things_by_their_names(deployments: Deployments) -> None:
    token = deployments.lease("prod", "ci", 60, None, by="a").token
    deployments.change("prod", token, [thing(f"t{number}") for number in range(600)], [], by="a")
    assert [one.name for one in deployments.of_names("topic", ["t7", "t599", "none"])] == ["t599", "t7"]
    assert len(deployments.of_names("topic", [f"t{number}" for number in range(600)])) == 600
    assert deployments.of_names("right", ["t7"]) == []
