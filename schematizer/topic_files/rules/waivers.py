"""Waivers: exceptions from rules, with a reason and a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from schematizer.topic_files.files.topic_file import Waiver
from schematizer.topic_files.rules.codes import RULES, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from schematizer.topic_files.files.reading import TopicFolder


class Waived(NamedTuple):
    """A finding that does not count."""

    # The finding.
    finding: Finding
    # Why it does not count.
    waiver: Waiver


class Judged(NamedTuple):
    """The findings of a topic."""

    # Those that count.
    findings: list[Finding]
    # Those that do not.
    waived: list[Waived]


def judge(topic: TopicFolder, found: Sequence[Finding], today: date) -> Judged:
    """Take out what is waived, and add what is wrong with waivers."""
    judged, used = Judged([], []), set()
    waivers = {waiver.rule: waiver for waiver in topic.file.waivers}
    for finding in found:
        waiver = waivers.get(finding.rule)
        if waiver is None or not RULES[finding.rule].is_waivable:
            judged.findings.append(finding)
            continue
        used.add(finding.rule)
        if waiver.until < today:
            judged.findings.append(finding)
        else:
            judged.waived.append(Waived(finding, waiver))
    for code, waiver in waivers.items():
        rule = RULES.get(code)
        if rule is None or not rule.is_waivable:
            judged.findings.append(Finding("T903", topic.path, f"{code} is no rule that can be waived"))
        elif code not in used:
            judged.findings.append(Finding("T902", topic.path, f"{code} is not broken here"))
        elif waiver.until < today:
            judged.findings.append(Finding("T901", topic.path, f"the waiver of {code} ended on {waiver.until}"))
    return judged
