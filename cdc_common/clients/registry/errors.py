"""The one error of requests to a schema registry: what it means, and what to do about it."""

from __future__ import annotations

from cdc_common.errors.codes import CdcError, Code

NOT_FOUND = "not-found"
"""cassandra-schematizer's word for a thing that does not exist."""
CONFLICT = "conflict"
"""Its word for a request that something else stands against."""
SCHEMA_NOT_FOUND = "40403"
"""Confluent's number for a schema that does not exist."""
NOT_UNDERSTOOD = "not-understood"
"""The word for an answer that is none of the API's."""
_PASSING = (408, 429)
_NOT_IMPLEMENTED = 501
_UNAUTHORISED = (401, 403)
_NO_SUCH_PATH = ("", "http", "404", NOT_UNDERSTOOD)
_NO_SUCH_REQUEST = (200, 404, 405, _NOT_IMPLEMENTED)
_INCOMPATIBLE = 409
_START = "Start it (cassandra-schematizer serve), or correct registry.url."
_LOG = "See the registry's own log, and try again once it works."
_LOGIN = "Correct registry.username and registry.password, or grant that user the right: the role writer, to register."
_SUBJECT = "Compare the schema with the subject's versions, or set another compatibility level for the subject."
_URL = "Check that registry.url is the root of a registry with this API. If it is, see its message."


class RegistryRequestError(CdcError):
    """REGISTRY_UNREACHABLE: the registry did not answer or has failed. REGISTRY_REFUSED: it refused the request, or
    another program has answered.
    """

    def __init__(self, problem: str, fix: str = "", *, status: int | None, word: str) -> None:
        """`status`: of HTTP, None if there was no answer. `word`: the registry's own name or number for the refusal."""
        code = Code.REGISTRY_UNREACHABLE if status is None or _may_pass(status) else Code.REGISTRY_REFUSED
        super().__init__(code, problem, fix)
        self.status = status
        self.word = word

    @property
    def is_retried(self) -> bool:
        """Whether the same request may succeed later: the registry was away, busy or broken."""
        return self.code is Code.REGISTRY_UNREACHABLE

    @property
    def is_not_found(self) -> bool:
        """Whether cassandra-schematizer says that what was asked for does not exist."""
        return self.word == NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """Whether cassandra-schematizer says that something else stands against the request."""
        return self.word == CONFLICT

    @property
    def lacks_schema(self) -> bool:
        """Whether the registry does not have the schema that was asked for."""
        return self.word == SCHEMA_NOT_FOUND

    @property
    def lacks_request(self) -> bool:
        """Whether the server does not know the request at all: it is no cassandra-schematizer."""
        return self.status in _NO_SUCH_REQUEST and self.word in (*_NO_SUCH_PATH, str(self.status))


class IncompatibleSchemaError(RegistryRequestError):
    """REGISTRY_REFUSED: the subject's compatibility level does not allow the schema."""


def not_found(problem: str, fix: str) -> RegistryRequestError:
    return RegistryRequestError(problem, fix, status=404, word=NOT_FOUND)


def no_answer(url: str, request: str, reason: str) -> RegistryRequestError:
    problem = f"The schema registry at {url} does not answer: {request}: {reason}."
    return RegistryRequestError(problem, _START, status=None, word="unreachable")


def not_understood(url: str, request: str, reason: str) -> RegistryRequestError:
    problem = f"The server at {url} answers {request} as no schema registry does: {reason}."
    return RegistryRequestError(problem, _URL, status=200, word=NOT_UNDERSTOOD)


def refusal(url: str, request: str, status: int, answer: object) -> RegistryRequestError:
    """`answer`: the parsed body of the response, of Confluent's API (`error_code`, `message`) or of the catalogue's
    (`error`, `message`, `fix`); anything else if another program has answered.
    """
    said = answer if isinstance(answer, dict) else {}
    word = str(said.get("error", said.get("error_code", "")))
    reason = f"HTTP {status}, {word}: {str(said['message']).rstrip('.')}" if "message" in said else f"HTTP {status}"
    if _may_pass(status):
        problem = f"The schema registry at {url} failed: {request}: {reason}."
        return RegistryRequestError(problem, _LOG, status=status, word=word)
    problem = f"The schema registry at {url} refuses {request}: {reason}."
    if "error" not in said and _INCOMPATIBLE in (status, said.get("error_code")):
        return IncompatibleSchemaError(problem, _SUBJECT, status=status, word=word)
    fix = _LOGIN if status in _UNAUTHORISED else str(said.get("fix") or _URL)
    return RegistryRequestError(problem, fix, status=status, word=word)


def _may_pass(status: int) -> bool:
    return status in _PASSING or (status >= 500 and status != _NOT_IMPLEMENTED)
