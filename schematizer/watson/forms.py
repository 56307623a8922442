"""The place of protection against forged forms: every form carries `token` in the field FIELD of access/csrf.py, and
every POST passes `check`. With logins it is CookieForms of that module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from schematizer.errors import CatalogueError, Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

_OWN = ("same-origin", "none")


class Forms(Protocol):
    """Several threads use one."""

    def token(self, request: Request) -> str | None:
        """The hidden value of the forms on this page; None for none."""
        ...

    def check(self, request: Request, token: str) -> None:
        """Raise CatalogueError FORBIDDEN for a form that is not from a page of Watson. `token`: what it carried, or
        empty.
        """
        ...


class FormsWithoutLogin:
    """Forms of a registry without sessions: no token. A request that the browser says comes from another site is
    refused.
    """

    def token(self, request: Request) -> str | None:  # noqa: ARG002 - Forms'
        return None

    def check(self, request: Request, token: str) -> None:  # noqa: ARG002 - Forms'
        if request.headers.get("sec-fetch-site", "none") not in _OWN:
            raise CatalogueError(
                Refusal.FORBIDDEN, "This form was sent by another site.", "Open the page in Watson and send it there."
            )
