"""The findings as text for people, as SARIF 2.1.0 for code hosts, and as JUnit's XML for CI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from schematizer.topic_files.rules.codes import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schematizer.topic_files.rules.check import Checked
    from schematizer.topic_files.rules.codes import Finding

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(checked: Checked) -> Iterator[str]:
    """Yield the lines of a report."""
    for finding in checked.findings:
        yield f"{finding.path}: {finding.rule} {finding.problem}"
        yield f"    fix: {RULES[finding.rule].fix}"
    for finding, waiver in checked.waived:
        yield f"{finding.path}: {finding.rule} waived until {waiver.until}: {finding.problem} ({waiver.reason})"


def as_sarif(checked: Checked) -> str:
    """Return a log of SARIF with one run. A waived finding is a suppressed result."""
    results = [_result(finding) for finding in checked.findings]
    for finding, waiver in checked.waived:
        reason = f"{waiver.reason} (until {waiver.until})"
        results.append({**_result(finding), "suppressions": [{"kind": "inSource", "justification": reason}]})
    rules = [
        {"id": rule.code, "shortDescription": {"text": rule.title}, "help": {"text": rule.fix}}
        for rule in RULES.values()
    ]
    driver = {"name": "cassandra-schematizer topics check", "rules": rules}
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def as_junit(checked: Checked) -> str:
    """Return JUnit's XML: a test case for each rule, which fails with all its findings."""
    broken: dict[str, list[Finding]] = {}
    for finding in checked.findings:
        broken.setdefault(finding.rule, []).append(finding)
    counts = {"tests": str(len(RULES)), "failures": str(len(broken)), "errors": "0"}
    suite = ET.Element("testsuite", {"name": "topics check", **counts})
    for rule in RULES.values():
        case = ET.SubElement(suite, "testcase", {"classname": "topics", "name": f"{rule.code} {rule.title}"})
        found = broken.get(rule.code, [])
        if found:
            failure = ET.SubElement(case, "failure", {"message": f"{len(found)} findings. {rule.fix}"})
            failure.text = "\n".join(f"{finding.path}: {finding.problem}" for finding in found)
    suites = ET.Element("testsuites")
    suites.append(suite)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True)


def _result(finding: Finding) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": finding.path}, "region": {"startLine": 1}}
    return {
        "ruleId": finding.rule,
        "level": "error",
        "message": {"text": f"{finding.problem}. {RULES[finding.rule].fix}"},
        "locations": [{"physicalLocation": place}],
    }
