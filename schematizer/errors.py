"""Refusals of the catalogue, and how the REST interface answers them."""

from __future__ import annotations

from enum import Enum


class Refusal(Enum):
    """Value: the HTTP status."""

    INVALID = 422
    NOT_FOUND = 404
    CONFLICT = 409
    FORBIDDEN = 403
    UNAUTHENTICATED = 401
    TIMEOUT = 408
    TOO_LARGE = 413
    TOO_MANY = 429
    UNAVAILABLE = 503

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", "-")


class CatalogueError(Exception):
    """`problem` says what is wrong with which name, `fix` what to do about it."""

    def __init__(self, refusal: Refusal, problem: str, fix: str) -> None:
        super().__init__(f"{problem} {fix}")
        self.refusal = refusal
        self.problem = problem
        self.fix = fix


def not_found(what: str, name: object, fix: str = "Check the name; the list of all is one path up.") -> CatalogueError:
    return CatalogueError(Refusal.NOT_FOUND, f"There is no {what} {name}.", fix)


def conflict(problem: str, fix: str) -> CatalogueError:
    return CatalogueError(Refusal.CONFLICT, problem, fix)


def invalid(problem: str, fix: str) -> CatalogueError:
    return CatalogueError(Refusal.INVALID, problem, fix)
