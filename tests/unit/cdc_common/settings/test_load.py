"""Where settings come from, which source wins, and what each mistake says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import all_settings, mask_url
from cdc_common.settings.load import load_settings
from cdc_common.settings.tables import TABLES, all_tables

OPERATIONS_TABLES = [known.table for known in all_settings() if known.key == "operations_address"]


@pytest.fixture(autouse=True)
def _nothing_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("CDC_"):
            monkeypatch.delenv(name)


def refused(code: Code, overrides: dict[str, object] | None = None, file: Path | None = None) -> CdcError:
    with pytest.raises(CdcError) as caught:
        load_settings(file, overrides or {})
    assert caught.value.code is code
    return caught.value


def test_defaults_are_valid_and_told_as_such() -> None:
    loaded = load_settings(None, {})
    assert loaded.settings == all_tables()()
    assert loaded.file is None
    assert set(loaded.origins.values()) == {"default"}
    for table in TABLES:
        values = getattr(loaded.settings, table).model_dump()
        assert all_tables().model_validate({table: values}) == loaded.settings


def test_environment_goes_over_file_and_flags_over_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cdc.toml").write_text('[kafka]\ntopic_prefix = "file"\nraw_partitions = 2\nchange_partitions = 2\n')
    monkeypatch.setenv("CDC_KAFKA__RAW_PARTITIONS", "3")
    monkeypatch.setenv("CDC_KAFKA__CHANGE_PARTITIONS", "3")
    loaded = load_settings(None, {"kafka.change_partitions": "4"}, {"kafka.change_partitions": "--partitions"})
    kafka = loaded.settings.kafka
    assert (kafka.topic_prefix, kafka.raw_partitions, kafka.change_partitions) == ("file", 3, 4)
    assert loaded.origins["kafka.topic_prefix"] == "cdc.toml"
    assert loaded.origins["kafka.raw_partitions"] == "environment CDC_KAFKA__RAW_PARTITIONS"
    assert loaded.origins["kafka.change_partitions"] == "--partitions"
    assert loaded.origins["kafka.bootstrap_servers"] == "default"


def test_the_file_is_named_by_flag_else_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cdc", "environment", "flag"):
        (tmp_path / f"{name}.toml").write_text(f'[kafka]\ntopic_prefix = "{name}"\n')
    assert load_settings(None, {}).settings.kafka.topic_prefix == "cdc"
    monkeypatch.setenv("CDC_CONFIG", str(tmp_path / "environment.toml"))
    assert load_settings(None, {}).settings.kafka.topic_prefix == "environment"
    assert load_settings(tmp_path / "flag.toml", {}).settings.kafka.topic_prefix == "flag"


def test_without_a_named_file_it_is_that_of_the_folder_or_else_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container or a unit with settings in its environment alone needs no file, and names none."""
    machines = tmp_path / "etc" / "cdc.toml"
    monkeypatch.setattr("cdc_common.settings.load.DEFAULT_FILES", (Path("cdc.toml"), machines))
    monkeypatch.setenv("CDC_KAFKA__RAW_PARTITIONS", "3")
    assert load_settings(None, {}).file is None
    assert load_settings(None, {}).settings.kafka.raw_partitions == 3
    machines.parent.mkdir()
    machines.write_text('[kafka]\ntopic_prefix = "machine"\n')
    assert load_settings(None, {}).settings.kafka.topic_prefix == "machine"
    Path("cdc.toml").write_text('[kafka]\ntopic_prefix = "folder"\n')
    assert load_settings(None, {}).settings.kafka.topic_prefix == "folder"


def test_a_folder_that_is_closed_to_the_user_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is run by `sudo -u` in root's folder."""

    def refuse(_path: Path, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    assert load_settings(None, {}).file is None
    assert "this user" in str(refused(Code.CONFIG_FILE, file=Path("closed/cdc.toml")))


def test_a_named_file_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--config" in refused(Code.CONFIG_FILE, file=tmp_path / "none.toml").problem
    monkeypatch.setenv("CDC_CONFIG", str(tmp_path))
    assert "CDC_CONFIG" in refused(Code.CONFIG_FILE).problem


def test_variables_without_a_double_underscore_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_PROJECT", "/somewhere")
    monkeypatch.setenv("CDC_JAVA", "pypi")
    assert load_settings(None, {}).settings == all_tables()()


def test_lists_and_nothing_in_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_CASSANDRA__CONTACT_POINTS", "a, b")
    monkeypatch.setenv("CDC_KAFKA__SSL_CA_FILE", "")
    settings = load_settings(None, {"materializer.tombstones": "false"}).settings
    assert settings.cassandra.contact_points == ["a", "b"]
    assert settings.kafka.ssl_ca_file is None
    assert settings.materializer.tombstones is False


def test_a_list_in_json_is_refused_in_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a list of one pattern it would match no topic, and nothing would say so."""
    monkeypatch.setenv("CDC_ARCHIVE__TOPICS", '["cdc.shop.orders"]')
    error = refused(Code.CONFIG_INVALID)
    assert "CDC_ARCHIVE__TOPICS" in error.problem
    assert "a,b" in error.problem


def test_a_list_of_patterns_may_begin_with_a_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_ARCHIVE__TOPICS", "[a-z]+,b")
    assert load_settings(None, {}).settings.archive.topics == ["[a-z]+", "b"]


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("CDC_KAFKA__BOOTSTRAP", "CDC_KAFKA__BOOTSTRAP_SERVERS"),
        ("CDC_KAFKA__BOOSTRAP_SERVERS", "CDC_KAFKA__BOOTSTRAP_SERVERS"),
        ("CDC_KAFK__BOOTSTRAP_SERVERS", "CDC_KAFKA__BOOTSTRAP_SERVERS"),
        ("CDC_KAFKA__URL", "CDC_REGISTRY__URL"),
        ("CDC_MATERIALISER__GROUP_ID", "CDC_MATERIALIZER__GROUP_ID"),
    ],
)
def test_an_unknown_variable_is_named_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, variable: str, nearest: str
) -> None:
    monkeypatch.setenv(variable, "x")
    error = refused(Code.CONFIG_UNKNOWN_KEY)
    assert variable in error.problem
    assert nearest in error.fix


@pytest.mark.parametrize(
    ("text", "unknown", "nearest"),
    [
        ('[kafka]\nbootstrap = "x"\n', "kafka.bootstrap", "kafka.bootstrap_servers"),
        ('[kafak]\ntopic_prefix = "x"\n', "kafak.topic_prefix", "kafka.topic_prefix"),
        ('[publisher]\ncdc_raw_directory = "/x"\n', "publisher.cdc_raw_directory", "mean node.cdc_raw_directory?"),
        ("[filler]\ncommitlog_segment_mib = 1\n", "filler.commitlog_segment_mib", "mean node.commitlog_segment_mib?"),
        ("[materializer]\nhold_seconds = 1\n", "materializer.hold_seconds", "mean materializer.reorder_seconds?"),
        ("[zebra]\nstripes = 1\n", "zebra.stripes", "schematizer"),
        ("[zebra]\n", "zebra", "docs/reference/configuration.md"),
        ("zebra = 1\n", "zebra", "docs/reference/configuration.md"),
    ],
)
def test_an_unknown_key_of_the_file_is_named_with_the_nearest(
    tmp_path: Path, text: str, unknown: str, nearest: str
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(text)
    error = refused(Code.CONFIG_UNKNOWN_KEY, file=file)
    assert f"{unknown} in {file}" in error.problem
    assert nearest in error.fix


@pytest.mark.parametrize(
    "line",
    ['raw_partitions = "3"', "raw_partitions = true", "raw_partitions = 0", "raw_partitions = 1979-05-27"],
)
def test_a_file_is_read_strictly(tmp_path: Path, line: str) -> None:
    (tmp_path / "cdc.toml").write_text(f"[kafka]\n{line}\n")
    error = refused(Code.CONFIG_INVALID)
    assert "kafka.raw_partitions in cdc.toml" in error.problem
    assert "integer, ≥ 1" in error.fix


def test_a_value_where_a_table_belongs(tmp_path: Path) -> None:
    (tmp_path / "cdc.toml").write_text('kafka = "localhost"\n')
    assert "[kafka]" in refused(Code.CONFIG_INVALID).fix


def test_a_wrong_value_names_its_flag_or_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--set" in refused(Code.CONFIG_INVALID, {"kafka.raw_partitions": "many"}).problem
    monkeypatch.setenv("CDC_LOG__LEVEL", "loud")
    error = refused(Code.CONFIG_INVALID)
    assert "CDC_LOG__LEVEL" in error.problem
    assert '"warning"' in error.fix


@pytest.mark.parametrize("content", [b"[kafka\n", b"[kafka]\ntopic_prefix = \n", b"\xff\xfe"])
def test_what_is_not_toml_says_where(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cdc.toml").write_bytes(content)
    error = refused(Code.CONFIG_FILE)
    assert "cdc.toml" in error.problem
    assert "line" in error.problem or "not text" in error.problem


def test_a_secret_comes_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("  geheim\n")
    loaded = load_settings(None, {"kafka.sasl_password_file": str(tmp_path / "secret")})
    assert loaded.settings.kafka.sasl_password.get_secret_value() == "geheim"
    assert str(tmp_path / "secret") in loaded.origins["kafka.sasl_password"]


def test_a_secret_and_its_file_exclude_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("geheim")
    monkeypatch.setenv("CDC_REGISTRY__PASSWORD", "geheim")
    error = refused(Code.CONFIG_INVALID, {"registry.password_file": str(tmp_path / "secret")})
    assert "CDC_REGISTRY__PASSWORD" in error.problem
    assert "--set" in error.problem
    assert "geheim" not in str(error)


def test_a_secret_file_must_hold_something(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff")
    refused(Code.CONFIG_INVALID, {"cassandra.password_file": str(tmp_path / "empty")})
    refused(Code.CONFIG_FILE, {"cassandra.password_file": str(tmp_path / "binary")})
    refused(Code.CONFIG_FILE, {"cassandra.password_file": str(tmp_path / "none")})


def test_an_error_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "cdc.toml").write_text("[kafka]\nsasl_password = 12345678\n")
    assert "12345678" not in str(refused(Code.CONFIG_INVALID))


@given(st.sampled_from([known.name for known in all_settings()]), st.text(max_size=20))
def test_any_text_is_a_value_or_one_error(name: str, text: str) -> None:
    try:
        origins = load_settings(None, {name: text}).origins
    except CdcError as error:
        refusal = error
    else:
        assert origins[name] == "--set"
        return
    assert refusal.code in (Code.CONFIG_INVALID, Code.CONFIG_FILE)
    assert name in refusal.problem


@pytest.mark.parametrize("name", [known.name for known in all_settings() if known.type_text == "path"])
def test_no_path_is_the_working_directory(name: str) -> None:
    """As of a variable whose value is another variable, which is not set."""
    value = {known.name: known.default for known in all_settings()}[name]
    if value is None:
        table, _, key = name.partition(".")
        assert getattr(getattr(load_settings(None, {name: ""}).settings, table), key) is None
    else:
        assert name in refused(Code.CONFIG_INVALID, {name: ""}).problem


@pytest.mark.parametrize(
    "name",
    [
        "cassandra.contact_points",
        "publisher.nodetool",
        "filler.nodetool",
        "materializer.group_id",
        "materializer.checkpoint_location",
        "transformer.group_id",
        "schematizer.host",  # an empty address is that of all networks
        *(f"{table}.operations_address" for table in OPERATIONS_TABLES),
    ],
)
def test_what_a_program_cannot_do_without_is_not_empty(name: str) -> None:
    assert name in refused(Code.CONFIG_INVALID, {name: ""}).problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.replication_factor", "0"),
        ("kafka.replication_factor", "-2"),
        ("filler.ttl_seconds", "630720001"),
        ("registry.url", "http://"),
        ("registry.url", "http://registry:port"),
        ("registry.url", "http://[::1"),
        ("registry.url", "http://registry:8081,http://"),
    ],
)
def test_what_no_server_takes_is_refused_here(name: str, value: str) -> None:
    assert name in refused(Code.CONFIG_INVALID, {name: value}).problem


def test_a_registry_may_have_several_hosts() -> None:
    url = "http://one:8081, https://[::1]:8081"
    assert load_settings(None, {"registry.url": url}).settings.registry.url == url


@pytest.mark.parametrize("variable", ["CDC_KAFKA_BOOTSTRAP_SERVERS", "cdc_kafka_bootstrap_servers"])
def test_one_underscore_is_too_few(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "kafka:9092")
    error = refused(Code.CONFIG_UNKNOWN_KEY)
    assert variable in error.problem
    assert "CDC_KAFKA__BOOTSTRAP_SERVERS" in error.fix


def test_what_kubernetes_says_of_a_service_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a Service that is named cdc-schematizer, in each pod of its namespace."""
    monkeypatch.setenv("CDC_SCHEMATIZER_PORT", "tcp://10.96.0.7:8081")
    monkeypatch.setenv("CDC_SCHEMATIZER_SERVICE_HOST", "10.96.0.7")
    assert load_settings(None, {}).settings == all_tables()()


def test_small_letters_are_no_way_past_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("cdc_kafak__topic_prefix", "x")
    assert "cdc_kafak__topic_prefix" in refused(Code.CONFIG_UNKNOWN_KEY).problem


@pytest.mark.parametrize(
    ("overrides", "has_no_effect"),
    [
        ({"kafka.ssl_ca_file": "/ca.pem"}, "kafka.ssl_ca_file"),
        (
            {"kafka.ssl_identity_file": "/me.pem", "kafka.security_protocol": "SASL_PLAINTEXT"},
            "kafka.ssl_identity_file",
        ),
        ({"kafka.sasl_username": "me"}, "kafka.sasl_username"),
        ({"kafka.sasl_username": "me", "kafka.security_protocol": "SSL"}, "kafka.sasl_username"),
        ({"cassandra.ssl_ca_file": "/ca.pem"}, "cassandra.ssl_ca_file"),
        ({"registry.ssl_ca_file": "/ca.pem", "registry.url": "http://registry"}, "registry.ssl_ca_file"),
        ({"registry.username": "me", "registry.url": "http://you:geheim@registry"}, "registry.username"),
        ({"publisher.processed_segments": "/var/lib/cassandra/cdc_raw"}, "publisher.processed_segments"),
        ({"publisher.spool_directory": "/var/lib/cassandra/cdc_raw/spool"}, "publisher.spool_directory"),
        ({"kafka.max_compaction_lag_hours": "24"}, "kafka.max_compaction_lag_hours"),
    ],
)
def test_no_setting_is_silently_without_effect(overrides: dict[str, object], has_no_effect: str) -> None:
    error = refused(Code.CONFIG_INVALID, overrides)
    assert error.problem.startswith(f"{has_no_effect} (--set)")
    assert "geheim" not in str(error)


def test_the_default_bound_of_compaction_gives_way() -> None:
    load_settings(None, {"kafka.min_compaction_lag_hours": "1000"})
    load_settings(None, {"kafka.min_compaction_lag_hours": "24", "kafka.max_compaction_lag_hours": "24"})
    load_settings(None, {"kafka.max_compaction_lag_hours": "0"})


def test_connections_with_tls_and_a_login_are_taken() -> None:
    files = {f"{table}.ssl_ca_file": "/ca.pem" for table in ("cassandra", "kafka", "registry")}
    kafka = {"kafka.security_protocol": "SASL_SSL", "kafka.sasl_username": "me", "kafka.sasl_password": "geheim"}
    more = {"cassandra.ssl": "true", "registry.url": "https://registry", "registry.username": "me"}
    load_settings(None, {**files, **kafka, **more})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:geheim@db/registry",
        "postgresql://me:ge/heim@db/registry",  # SQLAlchemy takes it as a password
        "postgresql://me:gehe@im@db/registry",
        "postgresql+psycopg://db/registry?user=me&password=geheim&sslmode=require",
    ],
)
def test_the_password_of_a_url_is_masked(url: str) -> None:
    shown = mask_url(f"'{url}'")
    assert "heim" not in shown
    assert "gehe" not in shown
    assert shown.startswith("'postgresql")
    assert "db/registry" in shown


def test_a_secret_that_another_program_reads_need_not_be_here(tmp_path: Path) -> None:
    """All programs read one cdc.toml; the registry's machine has no password of Cassandra's."""
    (tmp_path / "cdc.toml").write_text('[cassandra]\npassword_file = "/none"\n[kafka]\nsasl_password_file = "secret"\n')
    (tmp_path / "secret").write_text("geheim")
    settings = load_settings(None, {}, secrets_of=("kafka",)).settings
    assert settings.kafka.sasl_password.get_secret_value() == "geheim"
    assert settings.cassandra.password.get_secret_value() == ""
    refused(Code.CONFIG_FILE)
    with pytest.raises(CdcError, match=r"Both cassandra\.password"):
        load_settings(None, {"cassandra.password": "geheim"}, secrets_of=("kafka",))
