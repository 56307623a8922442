"""Writes a repository of what runs: files that ask for just that."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import yaml

from cdc_common.errors.codes import CdcError, Code
from schematizer.topic_files.files.parsing import files_named
from schematizer.topic_files.files.reading import CATALOGUE, KEY, SCHEMAS, TOPIC, read_repository
from schematizer.topic_files.importing.gather import UNKNOWN
from schematizer.topic_files.rules.check import check_repository
from schematizer.topic_files.rules.codes import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from pathlib import Path

    from schematizer.topic_files.importing.gather import Gathered

WAIVER_DAYS = 90
_NAME = "{environment}.{domain}.{topic}"
_DOMAIN = "default"
_FOLDER = re.compile(r"[^a-z0-9-]+")
_TYPOLOGY = {
    "doc": "Topics as they were found: choose another typology for each.",
    "partitions": 1,
    "replication_factor": 1,
    "encodings": ["avro", "json", "bytes"],
}


def write_imported(
    root: Path, gathered: Mapping[str, Gathered], settings: Mapping[str, Path], pii_prefix: str, today: date
) -> list[str]:
    """Write the files of environments. Return the rules that they break: each has a waiver for WAIVER_DAYS, if it can
    have one. CdcError TOPIC_FILES if the folder has a catalogue file.
    """
    if files_named(root, CATALOGUE):
        raise CdcError(Code.TOPIC_FILES, f"{root} has a catalogue file already.", "Import into an empty folder.")
    root.mkdir(parents=True, exist_ok=True)
    _dump(root / f"{CATALOGUE}.yaml", _catalogue(root, gathered, settings, pii_prefix))
    for environment, found in gathered.items():
        taken: set[tuple[str, str]] = set()
        for name in sorted(found.topics):
            _write_topic(root, environment, name, found, taken)
    return _waive(root, today)


def _catalogue(
    root: Path, gathered: Mapping[str, Gathered], settings: Mapping[str, Path], pii_prefix: str
) -> dict[str, Any]:
    owners = {UNKNOWN} | {team for found in gathered.values() for team in found.teams.values()}
    owners |= {topic["owner"] for found in gathered.values() for topic in found.topics.values()}
    return {
        "levels": ["domain", "topic"],
        "name": _NAME,
        "pii_prefix": pii_prefix,
        "environments": {name: {"settings": os.path.relpath(settings[name], root)} for name in gathered},
        "typologies": {"imported": _TYPOLOGY},
        "owners": {owner: {"contact": UNKNOWN} for owner in sorted(owners)},
        "services": _services(gathered),
    }


def _services(gathered: Mapping[str, Gathered]) -> dict[str, Any]:
    principals: dict[str, dict[str, str]] = defaultdict(dict)
    services: dict[str, Any] = {}
    for environment, found in gathered.items():
        for name, principal in found.principals.items():
            principals[name][environment] = principal
            prefixes = found.transactional_ids.get(name, [])
            known = services.setdefault(name, {"owner": UNKNOWN, "principal": None, "transactional_ids": []})
            known["owner"] = found.teams.get(name, known["owner"])
            known["transactional_ids"] = sorted({*known["transactional_ids"], *prefixes})
    for name, service in services.items():
        service["principal"] = dict(principals[name])
        if not service["transactional_ids"]:
            del service["transactional_ids"]
    return services


def _write_topic(root: Path, environment: str, name: str, found: Gathered, taken: set[tuple[str, str]]) -> None:
    domain, topic = _levels(environment, name)
    number = 1
    while (domain, topic) in taken:
        number += 1
        topic = f"{_levels(environment, name)[1]}-{number}"
    taken.add((domain, topic))
    folder = root / domain / topic / environment
    (folder / SCHEMAS).mkdir(parents=True)
    file = found.topics[name]
    is_named = name == _NAME.format(environment=environment, domain=domain, topic=topic) and "pii" not in file
    own = {key: value for key, value in file.items() if value not in (None, [])}
    _dump(folder / f"{TOPIC}.yaml", own if is_named else {"name": name, **own})
    for position, text in enumerate(found.values.get(name, []), 1):
        (folder / SCHEMAS / f"{position}.avsc").write_text(text + "\n", encoding="utf-8")
    if name in found.keys:
        (folder / SCHEMAS / f"{KEY}.avsc").write_text(found.keys[name] + "\n", encoding="utf-8")


def _levels(environment: str, name: str) -> tuple[str, str]:
    """Return the folders of a topic: its last word, and all that comes before it."""
    before, _, last = name.removeprefix(f"{environment}.").rpartition(".")
    return _folder(before) or _DOMAIN, _folder(last) or TOPIC


def _folder(text: str) -> str:
    folder = _FOLDER.sub("-", text.lower()).strip("-")
    return folder if not folder or folder[0].isalpha() else f"t-{folder}"


def _waive(root: Path, today: date) -> list[str]:
    """Append waivers to topic files. Return a line for each finding."""
    repository = read_repository(root)
    found = check_repository(repository, today).findings
    files = {(root / topic.path).parent: root / topic.path for topic in repository.topics}
    broken: dict[Path, set[str]] = defaultdict(set)
    for finding in found:
        folder = (root / finding.path).parent
        file = files.get(folder) or files.get(folder.parent)  # of a schema
        if file is not None and RULES[finding.rule].is_waivable:
            broken[file].add(finding.rule)
    until = today + timedelta(days=WAIVER_DAYS)
    for file, rules in broken.items():
        reason = "It was so when the files were imported."
        waivers = [{"rule": rule, "reason": reason, "until": until} for rule in sorted(rules)]
        with file.open("a", encoding="utf-8") as opened:
            opened.write(yaml.safe_dump({"waivers": waivers}, sort_keys=False))
    return [f"{finding.path}: {finding.rule} {finding.problem}" for finding in found]


def _dump(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
