"""The settings of `cassandra-schematizer`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic needs it
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from cdc_common.settings import shared
from cdc_common.settings.base import Table


class SchematizerSettings(Table):
    """The schema registry, `cassandra-schematizer`."""

    host: Annotated[str, Field(description="Address to listen on.", min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(description="Port to listen on.", ge=0, le=65535)] = 8081
    database_url: Annotated[str, Field(description="SQLAlchemy URL of the database. SQLite needs no server.")] = (
        "sqlite:////var/lib/cassandra-schematizer/registry.db"
    )
    documented_namespaces: list[str] = Field(
        default=[],
        description="Namespaces, or patterns such as `cdc.*`, in which /api/v1 refuses a schema without an owner, or "
        "without docs of the source and each field.",
    )
    pii_topic_prefix: Annotated[
        str,
        Field(
            description="Prefix of the names of topics with personal fields. Grant Kafka's rights by it.",
            pattern=r"^[a-zA-Z0-9_-]+$",
        ),
    ] = "pii-"
    registrations_topic: Annotated[
        str,
        Field(
            description="Kafka topic (of `[kafka]`) for each registration of a producer or consumer; empty for none."
        ),
    ] = ""
    sample_seconds: Annotated[
        float,
        Field(
            description="Interval at which Watson asks Kafka for offsets (s), if kafka.bootstrap_servers is set.",
            ge=1,
            le=3600,
        ),
    ] = 15.0
    operations_address: Annotated[
        str, Field(description="Address that serves /metrics, /health and /status.", min_length=1)
    ] = "127.0.0.1"
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9473
    open_reads: Annotated[
        bool | None,
        Field(
            description="Anyone may read without logging in. Default: only while `host` is a loopback address.",
        ),
    ] = None
    open_writes: Annotated[
        bool | None,
        Field(
            description="Anyone may write and administer without logging in, except keys and the audit log. Default: "
            "only while `host` is a loopback address.",
        ),
    ] = None
    public_url: Annotated[
        str | None,
        Field(
            description="URL under which browsers and clients reach the registry, if it is behind a proxy or has a "
            "name. Signing in by OIDC needs it.",
            pattern="^https?://[^/]+$",
        ),
    ] = None
    trusted_proxies: list[str] = Field(
        default=[],
        description="Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted.",
    )
    tls_certificate_file: Annotated[
        Path | None,
        Field(description="Certificate chain of the registry (PEM), for TLS. A renewed file is read within 10 s."),
    ] = None
    tls_key_file: Annotated[
        Path | None, Field(description="Private key of the certificate (PEM), if it is in a separate file.")
    ] = None
    tls_client_ca_file: Annotated[
        Path | None,
        Field(description="Authorities (PEM) that signed the clients' certificates. Every client then needs one."),
    ] = None
    tls_minimum_version: Annotated[Literal["1.2", "1.3"], Field(description="Oldest version of TLS.")] = "1.2"
    requests_per_second: Annotated[
        float | None,
        Field(
            description="Maximum rate of requests of one address, and of one actor (1/s; bursts of five times as "
            "many). Default: 100, or no limit while `host` is a loopback address.",
            gt=0,
        ),
    ] = None
    failed_logins_per_minute: Annotated[
        float,
        Field(description="Maximum rate of failed logins of one address (1/min). The answer to more is 429.", gt=0),
    ] = 10.0
    max_connections: Annotated[int, Field(description="Maximum number of open connections.", ge=2)] = 1000
    max_body_bytes: Annotated[int, Field(description="Maximum size of a request's body (bytes).", ge=1024)] = 4 << 20
    body_seconds: Annotated[
        float, Field(description="Maximum time to receive a request's head, and then its body (s).", gt=0)
    ] = 10.0
    request_seconds: Annotated[
        float, Field(description="Maximum time to answer a request (s). After it the answer is 503.", gt=0)
    ] = 60.0
    session_hours: Annotated[
        float, Field(description="Time for which a person stays signed in with a browser (hours).", gt=0, le=24 * 30)
    ] = 12.0
    audit_days: Annotated[int, Field(description="Time for which records of the audit log are kept (days).", ge=1)] = (
        365
    )
    oidc_issuer: Annotated[
        str | None,
        Field(description="URL of the OIDC issuer whose tokens are accepted.", pattern="^https?://[^?#]+$"),
    ] = None
    oidc_audience: Annotated[str, Field(description="Audience that a bearer token must name.")] = ""
    oidc_ca_file: Annotated[
        Path | None,
        Field(description="CA certificates to trust for the issuer (PEM); empty for those of the operating system."),
    ] = None
    oidc_clock_skew_seconds: Annotated[
        int, Field(description="Maximum difference of the issuer's clock (s).", ge=0, le=300)
    ] = 30
    oidc_keys_seconds: Annotated[
        float, Field(description="Time for which the issuer's keys are cached (s).", ge=10, le=24 * 3600)
    ] = 600.0
    oidc_name_claim: Annotated[str, Field(description="Claim that names the actor.", min_length=1)] = "sub"
    oidc_grants: list[str] = Field(
        default=[],
        description="Roles by claims: `CLAIM=VALUE:ROLE:NAMESPACE`, as in `groups=data-team:writer:cdc.*`. A claim may "
        "be a list, or words separated by spaces. ROLE: reader, writer or admin. NAMESPACE: a name, `cdc.*`, or `*`.",
    )
    oidc_client_id: Annotated[
        str,
        Field(description="Client id for signing in (authorization code with PKCE); empty for no signing in by OIDC."),
    ] = ""
    oidc_client_secret: Annotated[
        SecretStr, Field(description="Secret of that client, if it is a confidential client.")
    ] = SecretStr("")
    oidc_client_secret_file: Annotated[Path | None, Field(description="File that holds the client's secret.")] = None
    oidc_scopes: Annotated[str, Field(description="Scopes that are requested for signing in.")] = "openid profile"


class Settings(shared.Settings):
    """The tables of cdc.toml that the registry reads."""

    schematizer: SchematizerSettings = SchematizerSettings()
