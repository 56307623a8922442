"""The registry's error responses, with Confluent's error codes."""

from __future__ import annotations

LEVELS_TEXT = "none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive"


class RegistryError(Exception):
    """An error response {error_code, message}. The HTTP status is the first three digits of the code."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message

    @property
    def status(self) -> int:
        return int(str(self.error_code)[:3])


def not_found() -> RegistryError:
    """Return the error for a path that the API does not have."""
    return RegistryError(404, "HTTP 404 Not Found")


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: object = None) -> RegistryError:
    return RegistryError(40403, "Schema not found" if schema_id is None else f"Schema {schema_id} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406, f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_compatibility_of_subject(subject: str) -> RegistryError:
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode_of_subject(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, messages: list[str]) -> RegistryError:
    return RegistryError(
        409,
        f"Schema being registered is incompatible with an earlier schema for subject '{subject}', "
        f"details: [{'; '.join(messages)}]",
    )


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(42201, f"Invalid schema: {reason}")


def invalid_version(version: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_level(level: object) -> RegistryError:
    return RegistryError(42203, f"Invalid compatibility level {level!r}. Valid values are {LEVELS_TEXT}")


def invalid_mode(mode: object) -> RegistryError:
    return RegistryError(42204, f"Invalid mode {mode!r}. Valid values are READWRITE, READONLY and IMPORT")


def operation_not_permitted(message: str) -> RegistryError:
    return RegistryError(42205, message)


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid subject name")


def other_context(context: str) -> RegistryError:
    return RegistryError(
        422, f"The context {context} is not supported; this registry has the default context, '.', alone."
    )


def unprocessable(message: str) -> RegistryError:
    return RegistryError(422, message)


def database_failed() -> RegistryError:
    return RegistryError(50001, "Error in the registry's database; see the registry's log")
