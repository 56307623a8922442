"""The definition of a transformer: the tables of a transformers file.

The classes check what can be checked without a source: names, numbers, and what belongs together.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path  # noqa: TC003 - pydantic reads annotations
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from cdc_common.messages.topics import check_unversioned

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)")
_INT64 = 1 << 63
PII = "pii"


class Part(BaseModel):
    """An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CatalogueSource(Part):
    """A source of the Schematizer's catalogue."""

    # The name of the namespace.
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
    # The name of the source.
    source: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.source}"


class Target(CatalogueSource):
    """The source that a transformer writes."""

    # The owner that the catalogue shows; by default that of the source's schema.
    owner: str | None = None
    # The documentation that the catalogue shows; by default that of the source's schema.
    doc: str | None = None

    @field_validator("source")
    @classmethod
    def _check_source(cls, source: str) -> str:
        return check_unversioned(source)


class MaskStep(Part):
    """A step that hides the values of columns."""

    # The kind of step.
    kind: Literal["mask"]
    # The names of the columns, or `pii` for those that the catalogue marks as personal.
    columns: list[str] | Literal["pii"]
    # `drop` removes the column. `null` makes each value null. `redact` makes each value `***`. `hash` makes it the
    # HMAC-SHA256 of its Avro encoding under the salt, in hexadecimal.
    how: Literal["drop", "null", "redact", "hash"]
    # The secret of `hash`.
    salt: SecretStr | None = None
    # The file of that secret.
    salt_file: Path | None = None
    # Whether a column that the newest schema does not have stops the transformer. Messages of older schemas may have
    # it.
    missing: Literal["stop", "ignore"] = "stop"

    @model_validator(mode="after")
    def _check(self) -> MaskStep:
        if isinstance(self.columns, list):
            if not self.columns:
                raise ValueError("columns is empty")
            _check_unique(self.columns, "column")
        salts = (self.salt is not None) + (self.salt_file is not None)
        if self.how == "hash" and salts != 1:
            raise ValueError("hash needs either salt_file or salt")
        if self.salt is not None and not self.salt.get_secret_value().strip():
            raise ValueError("the salt is empty, so anyone could undo the hash")
        if self.how != "hash" and salts:
            raise ValueError(f"{self.how} takes no salt")
        return self


class EnumStep(Part):
    """A step that makes names of numbers."""

    # The kind of step.
    kind: Literal["enum"]
    # The name of the column.
    column: str
    # The names by their numbers, as text.
    names: dict[str, str]
    # What becomes of a number without a name.
    unknown: Literal["stop", "null", "keep"] = "stop"

    @field_validator("names")
    @classmethod
    def _check_names(cls, names: dict[str, str]) -> dict[str, str]:
        if not names:
            raise ValueError("there are no names")
        for number in names:
            if not _NUMBER.fullmatch(number) or number == "-0" or not -_INT64 <= int(number) < _INT64:
                raise ValueError(f"{number!r} is not a number of 64 bits")
        _check_unique(list(names.values()), "name")
        return names

    @model_validator(mode="after")
    def _check(self) -> EnumStep:
        numeric = [name for name in self.names.values() if _NUMBER.fullmatch(name)]
        if self.unknown == "keep" and numeric:
            raise ValueError(f"the name {numeric[0]!r} looks like a number that is kept")
        return self


class FlagsStep(Part):
    """A step that makes booleans of the bits of a number."""

    # The kind of step.
    kind: Literal["flags"]
    # The name of the column.
    column: str
    # The numbers of the bits by the names of the new columns; 0 is the lowest bit.
    bits: dict[str, Annotated[int, Field(ge=0, le=63)]]
    # Whether the number stays beside them.
    keep: bool = False
    # What becomes of a number that has another bit set.
    unknown: Literal["stop", "ignore"] = "stop"

    @field_validator("bits")
    @classmethod
    def _check_bits(cls, bits: dict[str, int]) -> dict[str, int]:
        if not bits:
            raise ValueError("there are no bits")
        for name in bits:
            _check_field(name)
        _check_unique(list(bits.values()), "bit")
        return bits


class DocsStep(Part):
    """A step that documents the table and its columns."""

    # The kind of step.
    kind: Literal["docs"]
    # The documentation of the table.
    table: str | None = None
    # The documentation of columns, by name.
    columns: dict[str, str] = {}

    @model_validator(mode="after")
    def _check(self) -> DocsStep:
        if self.table is None and not self.columns:
            raise ValueError("there is nothing in it")
        return self


Step: TypeAlias = Annotated[MaskStep | EnumStep | FlagsStep | DocsStep, Field(discriminator="kind")]


class Transformer(Part):
    """A transformation of one source into another."""

    # Its name, which is part of its consumer group: a new name begins at the first message.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=64)]
    # The source that it reads.
    source: CatalogueSource
    # The source that it writes.
    target: Target
    # Its steps, in order.
    step: list[Step]

    @model_validator(mode="after")
    def _check(self) -> Transformer:
        if not self.step:
            raise ValueError("it has no step")
        if (self.source.namespace, self.source.source) == (self.target.namespace, self.target.source):
            raise ValueError("its source and its target are the same")
        return self

    @property
    def masks_pii(self) -> bool:
        """Whether the catalogue says what it masks."""
        return any(isinstance(step, MaskStep) and step.columns == PII for step in self.step)


class TransformersFile(Part):
    """All of a file. The transformers may read each other's targets, without a circle."""

    # The transformers.
    transformer: list[Transformer]

    @model_validator(mode="after")
    def _check(self) -> TransformersFile:
        if not self.transformer:
            raise ValueError("it has no transformer")
        _check_unique([transformer.name for transformer in self.transformer], "transformer")
        _check_unique([str(transformer.target) for transformer in self.transformer], "target")
        _check_no_circle({str(transformer.target): str(transformer.source) for transformer in self.transformer})
        return self


def _check_no_circle(sources: dict[str, str]) -> None:
    for target, source in sources.items():
        seen, place = {target}, source
        while place in sources:
            if place in seen:
                raise ValueError(f"{place} is made from itself")
            seen.add(place)
            place = sources[place]


def _check_unique(values: list[str] | list[int], what: str) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise ValueError(f"the {what} {twice[0]!r} is there twice")


def _check_field(name: str) -> None:
    if not _FIELD.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an Avro field: letters, digits and _, and no digit first")
