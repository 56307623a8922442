"""The parts of the registry that requests of Confluent's API use. A handler names them as its first parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.confluent.store import Store

if TYPE_CHECKING:
    from fastapi import FastAPI

    from schematizer.confluent.guard import Guard


def keep_parts(app: FastAPI, store: Store, guard: Guard, count_database_error: Callable[[], None]) -> None:
    """Keep the parts where the application's requests find them."""
    app.state.store = store
    app.state.guard = guard
    app.state.count_database_error = count_database_error


def count_database_error(app: FastAPI) -> None:
    """Count an error of the database that an application with these parts has answered."""
    app.state.count_database_error()


async def store_of(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def seen_subjects(request: Request) -> Callable[[str], bool]:
    """Return the function that says whether the login may read a subject."""
    guard: Guard = request.app.state.guard
    return guard.sees(request)


StoreDep = Annotated[Store, Depends(store_of)]
SeesDep = Annotated[Callable[[str], bool], Depends(seen_subjects)]
