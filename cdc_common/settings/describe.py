"""Each setting's name, type, default and meaning, from cdc_common/settings: for help, errors and documentation."""

from __future__ import annotations

import re
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import annotated_types
from pydantic import SecretStr

from cdc_common.settings.tables import TABLES, table_class

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic.fields import FieldInfo

ENVIRONMENT_PREFIX = "CDC_"
# Up to the last @: a password may hold / and @. Database drivers also take it as a parameter.
_URL_PASSWORD = re.compile(r"(://[^:/@\s]*:)\S+@")
_URL_PARAMETER = re.compile(r"([?&][^=&\s]*(?:password|passwd|pwd|secret|token)[^=&\s]*=)[^&\s'\"]+", re.IGNORECASE)
_PASSWORD_OPTIONS = ("-pw", "--password")
_PASSWORD_OPTION = re.compile(rf"^({'|'.join(_PASSWORD_OPTIONS)})=.*", re.DOTALL)
_TYPE_NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "true or false",
    Path: "path",
    UUID: "UUID",
    SecretStr: "secret",
}
_BOUNDS: tuple[tuple[type, str, str], ...] = (
    (annotated_types.Ge, "ge", "≥"),
    (annotated_types.Gt, "gt", ">"),
    (annotated_types.Le, "le", "≤"),
    (annotated_types.Lt, "lt", "<"),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of one table."""

    # The name of the table.
    table: str
    # The name of the key.
    key: str
    # The type, as the documentation shows it.
    type_text: str
    # The default as the class has it. That of a secret is never shown.
    default: object
    # The meaning, from the key's `Field`.
    description: str
    # Whether its value is never shown.
    secret: bool

    @property
    def name(self) -> str:
        return f"{self.table}.{self.key}"

    @property
    def environment_name(self) -> str:
        return f"{ENVIRONMENT_PREFIX}{self.table}__{self.key}".upper()

    @property
    def metavar(self) -> str:
        """The type as shown in help: INTEGER, [auto|json]."""
        first = self.type_text.partition(",")[0]
        return (
            f"[{first.replace(' or ', '|')}]".replace('"', "") if " or " in first else first.upper().replace(" ", "_")
        )

    @property
    def default_text(self) -> str:
        return value_text(self.default)


def mask_password_options(command: Sequence[str]) -> list[str]:
    """The words of a command, with the password after nodetool's `-pw` or `--password` masked."""
    masked = [_PASSWORD_OPTION.sub(r"\1=***", word) for word in command]
    for index, word in enumerate(masked[1:], 1):
        if masked[index - 1] in _PASSWORD_OPTIONS:
            masked[index] = "***" if word else word
    return masked


def value_text(value: object) -> str:
    """A value as in cdc.toml, with secrets masked; `none` for None."""
    match value:
        case SecretStr():
            return '"***"' if value.get_secret_value() else '""'
        case bool():
            return str(value).lower()
        case str() | Path() | UUID():
            return f'"{mask_url(str(value))}"'
        case list():
            items = mask_password_options(value) if all(isinstance(item, str) for item in value) else value
            return "[" + ", ".join(map(value_text, items)) + "]"
        case None:
            return "none"
        case _:
            return str(value)


def mask_url(url: str) -> str:
    """The text, with the password of each URL masked."""
    return _URL_PARAMETER.sub(r"\1***", _URL_PASSWORD.sub(r"\1***@", url))


def settings_of(table: str) -> list[Setting]:
    return [_setting(table, key, field) for key, field in table_class(table).model_fields.items()]


def all_settings() -> Iterator[Setting]:
    for table in TABLES:
        yield from settings_of(table)


def setting(name: str) -> Setting:
    """The setting `table.key`; KeyError if it does not exist."""
    return {known.name: known for known in all_settings()}[name]


def _setting(table: str, key: str, field: FieldInfo) -> Setting:
    return Setting(
        table=table,
        key=key,
        type_text=_type_text(field),
        default=field.get_default(call_default_factory=True, validated_data={}),
        description=field.description or "",
        secret=field.annotation is SecretStr,
    )


def _type_text(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {getattr(constraint, attribute)}"
        for constraint in field.metadata
        for kind, attribute, sign in _BOUNDS
        if isinstance(constraint, kind)
    ]
    pattern = next((found for item in field.metadata if (found := getattr(item, "pattern", None))), None)
    if pattern is not None:
        bounds.append(f"like {pattern}")
    return ", ".join([_annotation_text(field.annotation), *bounds])


def _annotation_text(annotation: Any) -> str:  # noqa: ANN401 - a type or a special form, which has no common type
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(f'"{value}"' for value in get_args(annotation))
    if origin in (Union, types.UnionType):
        return _annotation_text(next(part for part in get_args(annotation) if part is not type(None)))
    if origin is list:
        [item] = get_args(annotation)
        text = _annotation_text(get_args(item)[0] if get_origin(item) is Annotated else item)
        return f"list of {text}" if get_origin(item) is Literal else f"list of {text}s"
    return _TYPE_NAMES[annotation]
