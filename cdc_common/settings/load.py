"""Reads the settings: cdc.toml overrides the defaults, the environment overrides the file, flags override both.

Each layer is checked separately, so that an error names the file, the variable or the flag.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import SecretStr, ValidationError, create_model
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.combinations import check_combinations
from cdc_common.settings.describe import ENVIRONMENT_PREFIX, Setting, all_settings, mask_url, setting, settings_of
from cdc_common.settings.secret_file import read_secret
from cdc_common.settings.shared import Settings
from cdc_common.settings.tables import TABLES, all_tables

if TYPE_CHECKING:
    from cdc_common.settings.base import Table

DEFAULT_FILES = (Path("cdc.toml"), Path("/etc/cdc.toml"))
FILE_VARIABLE = "CDC_CONFIG"
DEFAULT_ORIGIN = "default"

S = TypeVar("S", bound=Settings)
Values = dict[str, Any]
"""Table → key → value, as a source gives them."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings that were read."""

    # All tables (all_tables).
    settings: Any
    # The origin of each value, by its name `table.key`.
    origins: dict[str, str]
    # The path of cdc.toml; None if none was read.
    file: Path | None

    def of(self, kind: type[S]) -> S:
        """The tables that a program reads."""
        return kind.model_validate({table: getattr(self.settings, table) for table in kind.model_fields})


@dataclass(frozen=True, slots=True)
class _Layer:
    """The values of one source. `origin_names` names the origin of each `table.key`; `origin` is that of the others."""

    values: Values
    origin: str
    origin_names: Mapping[str, str]

    def origin_of(self, name: str) -> str:
        return self.origin_names.get(name, self.origin)


class _Prefixed(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", enable_decoding=False, extra="forbid"
    )


@cache
def _sources() -> type[BaseSettings]:
    """All tables as the sources of pydantic-settings require them; never instantiated."""
    bases = cast("tuple[type[BaseSettings], ...]", (_Prefixed, all_tables()))
    return create_model("Sources", __base__=bases)


def load_settings(
    file: Path | None,
    overrides: Mapping[str, object],
    flag_names: Mapping[str, str] | None = None,
    secrets_of: Collection[str] = tuple(TABLES),
) -> Loaded:
    """The settings of the file, the environment and the overrides.

    `file` None means CDC_CONFIG, or the first of DEFAULT_FILES that exists. `overrides` maps `table.key` to the value
    of a flag, `flag_names` maps it to the flag. `secrets_of`: the tables whose files of secrets are read; those of
    other programs may be on other machines, or for other users alone. CdcError: CONFIG_FILE for a file that cannot be
    read, CONFIG_UNKNOWN_KEY and CONFIG_INVALID for the content of a source.
    """
    path = _settings_file(file)
    layers = [_environment_layer(), _flags_layer(overrides, flag_names or {})]
    if path is not None:
        layers.insert(0, _file_layer(path))
    merged: Values = {}
    origins = {known.name: DEFAULT_ORIGIN for known in all_settings()}
    for layer in layers:
        _check_names(layer)
        _check_values(layer)
        for table, values in layer.values.items():
            merged.setdefault(table, {}).update(values)
            origins.update({f"{table}.{key}": layer.origin_of(f"{table}.{key}") for key in values})
    loaded = Loaded(all_tables().model_validate(merged), origins, path)
    check_combinations(loaded.of(Settings), (getattr(loaded.settings, table) for table in TABLES), origins)
    return replace(loaded, settings=_with_secret_files(loaded.settings, origins, secrets_of))


def _settings_file(given: Path | None) -> Path | None:
    from_environment = os.environ.get(FILE_VARIABLE)
    path = given or (Path(from_environment) if from_environment else None)
    if path is None:
        return next((file for file in DEFAULT_FILES if _is_file(file)), None)
    if not _is_file(path):
        named_by = "--config" if given else FILE_VARIABLE
        raise CdcError(
            Code.CONFIG_FILE,
            f"The settings file {path}, named by {named_by}, does not exist, is no file, or is not this user's to see.",
            f"Correct {named_by}, or omit it to use ./{DEFAULT_FILES[0]}, {DEFAULT_FILES[1]} or the defaults.",
        )
    return path


def _is_file(path: Path) -> bool:
    """Whether there is a file that this user can see: with sudo the working folder is often another user's."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def _file_layer(path: Path) -> _Layer:
    try:
        source = TomlConfigSettingsSource(_sources(), path)
    except tomllib.TOMLDecodeError as error:
        raise CdcError(Code.CONFIG_FILE, f"{path} is not valid TOML: {error}.", "Correct that line.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CdcError(
            Code.CONFIG_FILE, f"{path} cannot be read: {reason}.", "It must be a readable UTF-8 file."
        ) from error
    return _Layer(source.toml_data, str(path), {})


def _environment_layer() -> _Layer:
    variables = {
        variable: tuple(variable[len(ENVIRONMENT_PREFIX) :].lower().split("__", 1))
        for variable in os.environ
        if variable.upper().startswith(ENVIRONMENT_PREFIX) and "__" in variable  # EnvSettingsSource takes any case
    }
    _check_underscores()
    names = {f"{table}.{key}": f"environment {variable}" for variable, (table, key) in variables.items()}
    values: Values = EnvSettingsSource(_sources())()
    for variable, (table, key) in variables.items():
        # The source omits unknown tables. They are added here, so that the error can name them.
        values.setdefault(table, {}).setdefault(key, os.environ[variable])
    return _Layer({table: found for table, found in values.items() if isinstance(found, dict)}, "environment", names)


def _check_underscores() -> None:
    """Refuse CDC_TABLE_KEY. Kubernetes itself makes such variables for a Service, as CDC_CASSANDRA_PORT=tcp://…"""
    known = {setting.environment_name.replace("__", "_", 1): setting for setting in all_settings()}
    for variable, value in os.environ.items():
        meant = known.get(variable.upper())
        if meant is not None and not value.startswith("tcp://"):
            raise CdcError(
                Code.CONFIG_UNKNOWN_KEY,
                f"The variable {variable} is no setting: two underscores separate table and key.",
                f"Did you mean {meant.environment_name}? Rename or remove it.",
            )


def _flags_layer(overrides: Mapping[str, object], flag_names: Mapping[str, str]) -> _Layer:
    values: Values = {}
    for name, value in overrides.items():
        table, _, key = name.partition(".")
        values.setdefault(table, {})[key] = value
    return _Layer(values, "--set", flag_names)


def _check_names(layer: _Layer) -> None:
    for table, values in layer.values.items():
        if table not in TABLES:
            keys = list(values) if isinstance(values, dict) else []
            raise _unknown(layer, table, keys[0] if keys else "")
        if not isinstance(values, dict):
            raise CdcError(
                Code.CONFIG_INVALID,
                f"{table} in {layer.origin} is a single value, but must be a table of settings.",
                f"Write its keys below a line [{table}].",
            )
        known = {setting.key for setting in settings_of(table)}
        for key in values:
            if key not in known:
                raise _unknown(layer, table, key)


def _unknown(layer: _Layer, table: str, key: str) -> CdcError:
    name = f"{table}.{key}" if key else table
    origin = layer.origin_of(name)
    nearest = _nearest(table, key)
    if nearest is None:
        fix = f"Remove it; the tables are {', '.join(TABLES)} (see docs/reference/configuration.md)."
    elif origin.startswith("environment"):
        fix = f"Did you mean {nearest.environment_name}? Rename or remove it."
    else:
        fix = f"Did you mean {nearest.name}? Rename or remove it."
    return CdcError(Code.CONFIG_UNKNOWN_KEY, f"Unknown setting {name} in {origin}.", fix)


def _nearest(table: str, key: str) -> Setting | None:
    """The setting most similar to table.key. In order of preference: a key of the same table that begins with it, the
    same key in another table, a similar key of the same table, a similar name.
    """
    by_name = {setting.name: setting for setting in all_settings()}
    close_tables = difflib.get_close_matches(table, TABLES, n=1, cutoff=0.7)
    by_key = {setting.key: setting for setting in settings_of(close_tables[0])} if close_tables else {}
    longer = [known for own_key, known in by_key.items() if key and own_key.startswith(key)]
    same = [known for known in by_name.values() if known.key == key]
    similar = [by_key[own_key] for own_key in difflib.get_close_matches(key, by_key, n=1, cutoff=0.5)]
    similar_names = [by_name[name] for name in difflib.get_close_matches(f"{table}.{key}", by_name, n=1, cutoff=0.6)]
    return next(iter([*longer, *same, *similar, *similar_names]), None)


def _check_values(layer: _Layer) -> None:
    """A file has types, so it is validated strictly. Variables and flags are text, so their values are converted."""
    try:
        if layer.origin in ("environment", "--set"):
            all_tables().model_validate(layer.values)
        else:
            all_tables().model_validate_json(json.dumps(layer.values, default=lambda _: {}), strict=True)
    except ValidationError as error:
        # Without the cause: pydantic's message repeats the input, which may be a secret.
        raise _invalid(layer, error) from None


def _invalid(layer: _Layer, error: ValidationError) -> CdcError:
    first = error.errors(include_url=False)[0]
    table, key = str(first["loc"][0]), str(first["loc"][1])
    known = setting(f"{table}.{key}")
    shown = "" if known.secret else f" {mask_url(repr(layer.values[table][key]))}"
    reason = str(first["msg"])
    return CdcError(
        Code.CONFIG_INVALID,
        f"The value{shown} of {known.name} in {layer.origin_of(known.name)} is not valid: {reason}.",
        f"Expected: {known.type_text}. {known.description}",
    )


def _with_secret_files(settings: Table, origins: dict[str, str], tables: Collection[str]) -> Table:
    """All tables, with each secret `x` of these tables read from its `x_file` if that is set."""
    updates: dict[str, Any] = {}
    for secret in all_settings():
        file_name = f"{secret.name}_file"
        if not secret.secret or file_name not in origins:
            continue
        table = updates.get(secret.table, getattr(settings, secret.table))
        path: Path | None = getattr(table, f"{secret.key}_file")
        if path is None:
            continue
        if origins[secret.name] != DEFAULT_ORIGIN:
            raise CdcError(
                Code.CONFIG_INVALID,
                f"Both {secret.name} ({origins[secret.name]}) and {file_name} ({origins[file_name]}) are set.",
                "Remove one of them.",
            )
        if secret.table not in tables:
            continue
        value = SecretStr(read_secret(path, f"{file_name} in {origins[file_name]}"))
        updates[secret.table] = table.model_copy(update={secret.key: value})
        origins[secret.name] = f"{path}, by {file_name}"
    return settings.model_copy(update=updates)
