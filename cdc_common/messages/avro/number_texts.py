"""Numbers and durations as text, each value in exactly one form.

Python's integers become text through Decimal: `str` refuses those of more than 4300 digits.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cassandra_storage.formats.types.serializers import Duration

_LEAST_ADJUSTED = -6  # of the exponents that a decimal has no E for
_SECOND = 1_000_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND


def integer_text(number: int) -> str:
    return f"{Decimal(number):f}"


def decimal_text(unscaled: int, scale: int) -> str:
    """As Java's BigDecimal has it: 29.97, 1.00, 1E+3. The scale can be read from it again."""
    digits, sign = integer_text(abs(unscaled)), "-" if unscaled < 0 else ""
    if not scale:
        return sign + digits
    adjusted = len(digits) - 1 - scale
    if scale > 0 and adjusted >= _LEAST_ADJUSTED:
        digits = digits.rjust(scale + 1, "0")
        return f"{sign}{digits[:-scale]}.{digits[-scale:]}"
    point = "." if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}{digits[1:]}E{adjusted:+d}"


def duration_text(duration: Duration) -> str:
    """As ISO 8601 has it, without the parts that are 0. A sign belongs to its part, as PostgreSQL reads it."""
    date = _part(duration.months, "M") + _part(duration.days, "D")
    sign, rest = "-" if duration.nanoseconds < 0 else "", abs(duration.nanoseconds)
    hours, rest = divmod(rest, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    seconds, fraction = divmod(rest, _SECOND)
    time = "".join(f"{sign}{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count)
    if rest:
        text = f"{seconds}.{fraction:09}".rstrip("0") if fraction else str(seconds)
        time += f"{sign}{text}S"
    if not date and not time:
        return "PT0S"
    return f"P{date}T{time}" if time else f"P{date}"


def _part(count: int, unit: str) -> str:
    return f"{count}{unit}" if count else ""
