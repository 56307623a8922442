"""A CQL client of Cassandra: the only module that imports the driver."""

from __future__ import annotations

import logging
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, NamedTuple, NoReturn, TypeAlias
from uuid import UUID

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    OperationTimedOut,
    ReadFailure,
    ReadTimeout,
    RequestExecutionException,
    Timeout,
    Unauthorized,
    Unavailable,
    UnresolvableContactPoints,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy, WhiteListRoundRobinPolicy
from cassandra.protocol import ErrorMessage, ProtocolHandler, ResultMessage, read_int
from cassandra.query import BoundStatement, dict_factory

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdc_common.settings import CassandraSettings

_UNREACHABLE = (
    NoHostAvailable,
    UnresolvableContactPoints,
    ConnectionException,
    OperationTimedOut,
    Timeout,
    Unavailable,
    OSError,
)


class LoginRefusedError(ConnectionException):  # type: ignore[misc]  # the driver ships no types
    """The node refuses the login."""


_AUTH = (AuthenticationFailed, LoginRefusedError, Unauthorized)
_ERRORS = (DriverException, ErrorMessage, ConnectionException, NoHostAvailable, UnresolvableContactPoints, OSError)

Consistency: TypeAlias = Literal["LOCAL_ONE", "ONE", "LOCAL_QUORUM", "QUORUM", "ALL"]
Unreadable: TypeAlias = Literal["tombstones", "timeout", "failure"]

RECONNECT_SECONDS = 2.0
_TOO_MANY_TOMBSTONES = 1  # RequestFailureReason.READ_TOO_MANY_TOMBSTONES


class LoggedInConnection(Cluster.connection_class):  # type: ignore[misc]  # the driver ships no types
    """Makes the driver try again after a refused login. Otherwise it would never connect again: a node that starts
    refuses all logins while it cannot read its roles. `refused`: the nodes that have refused the last login.
    """

    refused: ClassVar[dict[object, LoginRefusedError]] = {}

    @classmethod
    def factory(cls, endpoint: object, *args: object, **kwargs: object) -> LoggedInConnection:
        """The driver's own, to connect to a node."""
        try:
            connection = super().factory(endpoint, *args, **kwargs)
        except AuthenticationFailed as error:
            cls.refused[endpoint] = LoginRefusedError(str(error))
            raise cls.refused[endpoint] from error
        cls.refused.pop(endpoint, None)
        return connection  # type: ignore[no-any-return]  # as above


class Node(NamedTuple):
    """A Cassandra node."""

    # The node's id.
    host_id: UUID
    # The name of the cluster.
    cluster: str
    # The name of the datacenter.
    datacenter: str
    # The version of Cassandra, such as `5.0.8`.
    release: str


class CassandraClient:
    """A connection, which comes back after a failure of the node. Rows are dicts; errors are CdcError
    CASSANDRA_UNREACHABLE, _AUTH or _QUERY.
    """

    def __init__(self, session: Session, where: str) -> None:
        self._session = session
        self._where = where
        self._prepared: dict[str, Any] = {}

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """All rows of the result; the query has %s for each parameter."""
        try:
            return list(self._session.execute(query, parameters or None))
        except _ERRORS as error:
            raise_cdc_error(error, self._where, query, self._session)

    def write(self, query: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement that is prepared once; it has ? for each parameter."""
        try:
            if query not in self._prepared:
                self._prepared[query] = self._session.prepare(query)
            self._session.execute(self._prepared[query], parameters)
        except _ERRORS as error:
            raise_cdc_error(error, self._where, query, self._session)


class RawPage(NamedTuple):
    """One page of rows."""

    # The rows, as serialized values; None is null.
    rows: list[list[bytes | None]]
    # The paging state with which `RawReader.page` reads the next page; None at the end.
    following: bytes | None


class PageUnreadableError(Exception):
    """Replicas cannot read a page: they meet too many tombstones, take too long, or fail for a reason that only their
    logs have. Another page, or a smaller one, may be readable.
    """

    def __init__(self, reason: Unreadable) -> None:
        super().__init__(reason)
        self.reason = reason


class RawReader:
    """Reads rows as the bytes of their values, page by page, at one consistency. Statements are prepared once."""

    def __init__(self, session: Session, where: str, profile: ExecutionProfile) -> None:
        self._session = session
        self._where = where
        self._profile = profile
        self._prepared: dict[str, Any] = {}

    def page(self, query: str, values: Sequence[bytes], page_rows: int, following: bytes | None = None) -> RawPage:
        """The first page of at most `page_rows` rows, or the page after another one.

        `values`: serialized, one for each ? of the query. PageUnreadableError, or CdcError as CassandraClient.
        """
        try:
            if query not in self._prepared:
                self._prepared[query] = self._session.prepare(query)
            bound = BoundStatement(self._prepared[query], fetch_size=page_rows)
            bound.values = list(values)
            found = self._session.execute(bound, execution_profile=self._profile, paging_state=following)
            return RawPage(list(found.current_rows), found.paging_state)
        except ReadFailure as error:
            codes = (error.error_code_map or {}).values()  # native protocol 4 has no codes
            is_known = _TOO_MANY_TOMBSTONES in codes
            raise PageUnreadableError("tombstones" if is_known else "failure") from error
        except (ReadTimeout, OperationTimedOut) as error:
            raise PageUnreadableError("timeout") from error
        except _ERRORS as error:
            raise_cdc_error(error, self._where, query, self._session)


class _RawResult(ResultMessage):  # type: ignore[misc]  # the driver ships no types
    """Rows as the bytes of their values. The parameters are the driver's."""

    def recv_results_rows(
        self, f: BinaryIO, _version: int, user_type_map: object, result_metadata: list[Any] | None, *_: object
    ) -> None:
        self.recv_results_metadata(f, user_type_map)
        columns = self.column_metadata or result_metadata
        assert columns is not None
        self.column_names = [column[2] for column in columns]
        self.column_types = [column[3] for column in columns]
        self.parsed_rows = [self.recv_row(f, len(columns)) for _ in range(read_int(f))]


class RawValuesHandler(ProtocolHandler):  # type: ignore[misc]  # the driver ships no types
    """The handler of a session whose rows are the bytes of their values."""

    message_types_by_opcode: ClassVar = {**ProtocolHandler.message_types_by_opcode, ResultMessage.opcode: _RawResult}


@contextmanager
def connect_raw(settings: CassandraSettings, consistency: Consistency, answer_seconds: float) -> Iterator[RawReader]:
    """A reader whose coordinators are in the datacenter of the contact points. answer_seconds: for each page."""
    with _session(settings, settings.contact_points) as (session, where):
        session.client_protocol_handler = RawValuesHandler
        profile = session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT,
            consistency_level=ConsistencyLevel.name_to_value[consistency],
            request_timeout=answer_seconds,
            row_factory=_rows_as_they_are,
        )
        yield RawReader(session, where, profile)


def _rows_as_they_are(_names: object, rows: list[list[bytes | None]]) -> list[list[bytes | None]]:
    return rows


@contextmanager
def connect(settings: CassandraSettings, only: str | None = None) -> Iterator[CassandraClient]:
    """A client of the cluster, or with `only` of the one node at that address."""
    with _session(settings, [only] if only else settings.contact_points, pinned=bool(only)) as (session, where):
        yield CassandraClient(session, where)


@contextmanager
def _session(
    settings: CassandraSettings, contact_points: list[str], *, pinned: bool = False
) -> Iterator[tuple[Session, str]]:
    """A session, and the place of its servers for messages."""
    _silence_driver_log()
    where = ", ".join(f"{host}:{settings.port}" for host in contact_points)
    with _connection_errors(settings, where):
        cluster = _cluster(settings, contact_points, pinned=pinned)
    try:
        with _connection_errors(settings, where):
            session = cluster.connect()
        yield session, where
    finally:
        cluster.shutdown()


def read_node(client: CassandraClient) -> Node:
    """The node that answers. A connection to one node has only that node."""
    row = client.rows(
        "SELECT host_id, cluster_name, data_center, release_version FROM system.local WHERE key = 'local'"
    )[0]
    return Node(row["host_id"], row["cluster_name"], row["data_center"], row["release_version"])


def live_settings(client: CassandraClient) -> dict[str, str] | None:
    """The node's settings by name. None if it does not report them: in Cassandra 3.11, or without the permission."""
    try:
        rows = client.rows("SELECT name, value FROM system_views.settings")
    except CdcError as error:
        if error.code is Code.CASSANDRA_UNREACHABLE:
            raise
        return None
    return {row["name"]: row["value"] or "" for row in rows}


def peer_datacenters(client: CassandraClient) -> list[str]:
    """The datacenter of each other node of the cluster."""
    return [row["data_center"] for row in client.rows("SELECT data_center FROM system.peers")]


def check_cdc_enabled(settings: Mapping[str, str] | None) -> None:
    """Raise CdcError CDC_DISABLED if the node's live settings disable CDC."""
    if (settings or {}).get("cdc_enabled", "true") != "true":
        raise CdcError(
            Code.CDC_DISABLED,
            "The node runs with cdc_enabled: false.",
            "Set cdc_enabled: true in its cassandra.yaml and restart the node.",
        )


def _cluster(settings: CassandraSettings, contact_points: list[str], *, pinned: bool) -> Cluster:
    profile = ExecutionProfile(row_factory=dict_factory, request_timeout=settings.connect_timeout_seconds)
    if pinned:
        profile.load_balancing_policy = WhiteListRoundRobinPolicy(contact_points)
    auth = None
    if settings.username:
        auth = PlainTextAuthProvider(settings.username, settings.password.get_secret_value())
    return Cluster(
        contact_points,
        port=settings.port,
        auth_provider=auth,
        connection_class=LoggedInConnection,
        ssl_context=_tls(settings),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=settings.connect_timeout_seconds,
        control_connection_timeout=settings.connect_timeout_seconds,
        # The driver's default delay grows to ten minutes: it would reconnect to a restarted node that late.
        reconnection_policy=ConstantReconnectionPolicy(RECONNECT_SECONDS, max_attempts=None),
        # The programs read system_schema themselves. The driver's own copy would cost memory and time.
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
        compression=False,
    )


def _tls(settings: CassandraSettings) -> ssl.SSLContext | None:
    """Return the TLS context; None without TLS. CdcError CONFIG_INVALID if a file cannot be used."""
    if not settings.ssl:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_file)
        if settings.ssl_identity_file is not None:
            context.load_cert_chain(settings.ssl_identity_file)
    except OSError as error:  # ssl.SSLError is one
        raise CdcError(
            Code.CONFIG_INVALID,
            f"The certificates for Cassandra cannot be used: {error}.",
            "Set cassandra.ssl_ca_file, and ssl_identity_file to one PEM file with certificate and private key.",
        ) from error
    context.check_hostname = settings.ssl_check_hostname
    return context


@contextmanager
def _connection_errors(settings: CassandraSettings, where: str) -> Iterator[None]:
    """Raise errors of the connection as CdcError."""
    try:
        yield
    except _ERRORS as error:
        inner = list(error.errors.values()) if isinstance(error, NoHostAvailable) and error.errors else [error]
        if any(isinstance(cause, _AUTH) or "authentication" in str(cause).lower() for cause in inner):
            role = f"as {settings.username}" if settings.username else "without a role"
            raise _login_refused(where, role) from error
        raise_cdc_error(error, where, "connect")


def _login_refused(where: str, how: str) -> CdcError:
    return CdcError(
        Code.CASSANDRA_AUTH,
        f"Cassandra at {where} refuses the login {how}.",
        "Set cassandra.username and cassandra.password (or password_file) to a role that may log in.",
    )


def raise_cdc_error(error: Exception, where: str, query: str, session: Session | None = None) -> NoReturn:
    """Raise the driver's error as a CdcError. That no node can be asked says not why: the session does."""
    if isinstance(error, NoHostAvailable) and session is not None:
        for host in session.cluster.metadata.all_hosts():
            if (refusal := LoggedInConnection.refused.get(host.endpoint)) is not None:
                raise _login_refused(where, f"({_first_line(refusal)})") from error
    if isinstance(error, _AUTH):
        raise CdcError(
            Code.CASSANDRA_AUTH,
            f"Cassandra at {where} does not permit: {query} ({_first_line(error)}).",
            "Grant the role the permissions listed in docs/guides/secure.md.",
        ) from error
    if isinstance(error, _UNREACHABLE) or not isinstance(error, RequestExecutionException | DriverException):
        raise CdcError(
            Code.CASSANDRA_UNREACHABLE,
            f"Cassandra at {where} does not answer ({_first_line(error)}).",
            "Check that the node is up (nodetool status), and cassandra.contact_points and cassandra.port.",
        ) from error
    raise CdcError(
        Code.CASSANDRA_QUERY,
        f"Cassandra at {where} refuses: {query} ({_first_line(error)}).",
        "See the node's log. This build supports Cassandra 3.11 to 5.0.",
    ) from error


def _first_line(error: Exception) -> str:
    if isinstance(error, NoHostAvailable) and isinstance(error.errors, dict) and error.errors:
        error = next(iter(error.errors.values()))
    return (str(error).splitlines() or [""])[0][:200] or type(error).__name__


def _silence_driver_log() -> None:
    """The driver logs every error that it raises, and every lost connection several times."""
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
