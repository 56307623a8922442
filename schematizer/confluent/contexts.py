"""Confluent's contexts: a subject may be written `:.context:subject`. This registry has the default context alone."""

from __future__ import annotations

from schematizer.confluent import errors

_PREFIX = ":."
_DEFAULT_CONTEXT = ":.:"
_EVERY = ":*:"


def without_default(subject: str) -> str:
    """The subject without the default context, if it names that."""
    return subject.removeprefix(_DEFAULT_CONTEXT)


def plain_subject(subject: str) -> str:
    """The subject without the default context; RegistryError if it names another one."""
    plain = without_default(subject)
    if plain.startswith((_PREFIX, _EVERY)):
        raise errors.other_context(plain[1:].partition(":")[0])
    return plain


def plain_prefix(prefix: str) -> str:
    """The prefix of subjects without the default context, or without `:*:`, which means all contexts."""
    return prefix[len(_EVERY) :] if prefix.startswith(_EVERY) else plain_subject(prefix)


def is_default(context: str) -> bool:
    """Whether a context of a path, which may stand between colons, is the default one."""
    return context.removeprefix(":").removesuffix(":") in ("", ".")
