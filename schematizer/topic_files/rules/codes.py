"""All rules, by code: a title, a fix, and whether a topic may be an exception for a time."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule."""

    # Its code.
    code: str
    # What it asks for, as a sentence.
    title: str
    # What to do about a finding, as a sentence.
    fix: str
    # Whether a waiver counts.
    is_waivable: bool = True


class Finding(NamedTuple):
    """A place where a rule is not kept."""

    # The code of the rule.
    rule: str
    # The path of the file, relative to the repository.
    path: str
    # What is wrong, with names.
    problem: str


_ALL = (
    Rule("T001", "A file can be read.", "Correct the file: its JSON Schema says what it may hold.", False),
    Rule("T002", "A topic's folder has the levels and an environment of catalogue.toml.", "Move the folder.", False),
    Rule("T003", "A folder has one topic file.", "Keep one of the files.", False),
    Rule("T004", "A name has one topic in each environment.", "Rename one of the folders.", False),
    Rule("T101", "Folders are named by the convention.", "Rename the folder, or change names.folder for all."),
    Rule(
        "T102",
        "Kafka can have a topic of that name.",
        "Use letters, digits, `.`, `_` and `-`, at most 249 of them, and no name that differs in `.` and `_` alone.",
        False,
    ),
    Rule("T103", "Fields are named by the convention.", "Rename the field, or change names.field for all."),
    Rule(
        "T104",
        "A topic with personal data has the prefix of names for it.",
        "Begin `name` with pii_prefix, or remove it.",
    ),
    Rule("T201", "The owner is a team of catalogue.toml.", "Correct the name, or add the team to `owners`.", False),
    Rule("T202", "Producers and consumers are services of catalogue.toml.", "Correct it, or add the service.", False),
    Rule("T203", "The typology is one of catalogue.toml.", "Correct the name, or add the typology.", False),
    Rule("T204", "The class of throughput is one of catalogue.toml.", "Correct the name, or add the class.", False),
    Rule("T205", "A warehouse and the archive are in catalogue.toml.", "Correct the name, or add it.", False),
    Rule("T206", "A service has a principal in the environment.", "Add the environment to its `principal`."),
    Rule("T207", "A service's owner is a team of catalogue.toml.", "Correct the name, or add the team.", False),
    Rule("T208", "A topic has a producer.", "List the services that write it."),
    Rule(
        "T209",
        "A topic names a warehouse once.",
        "Keep one of them: give another form a warehouse and a job of its own.",
        False,
    ),
    Rule("T301", "A topic has a doc.", "Add `doc`: what the topic holds."),
    Rule("T302", "Each field has a doc, in the schema or in the topic file.", "Add the field's `doc`."),
    Rule("T303", "A documented field is in the newest schema.", "Correct the path, or remove the entry."),
    Rule("T304", "One file documents a source.", "Keep it in one of the files: the other would undo it.", False),
    Rule("T401", "A schema has the typology's mandatory fields.", "Add the field, with that type."),
    Rule("T402", "All times of events have one type.", "Use time_type of catalogue.toml."),
    Rule("T403", "The encoding is one of the typology.", "Choose another typology or encoding."),
    Rule("T501", "Personal fields are in topics for personal data.", "Set `pii`, or remove the flag."),
    Rule(
        "T502", "The level of personal data is allowed for the typology and scope.", "Choose another scope or typology."
    ),
    Rule("T503", "A topic for personal data says which fields are personal.", "Mark them: `pii = true`."),
    Rule(
        "T504",
        "A warehouse gets personal fields only if catalogue.toml says so.",
        "Set the topic's `personal_data` to leave_out, or that of the warehouse to load.",
        False,
    ),
    Rule(
        "T505",
        "A topic for personal data says what its warehouses do with it.",
        "Set `personal_data` of the topic's warehouse to leave_out, or to load if the warehouse may have it.",
    ),
    Rule("T601", "A schema is Avro.", "Correct the schema.", False),
    Rule("T602", "All schemas can read each other's messages.", "Give new fields a default, and keep types and names."),
    Rule("T603", "The primary key never changes.", "Keep it, or start a new topic."),
    Rule("T604", "The fields of the primary key are in every schema.", "Add the fields, or correct the key."),
    Rule("T605", "A compacted topic has a primary key.", "Add `primary_key`, or a schema of keys."),
    Rule("T606", "An Avro topic has a schema.", "Add schemas/1.avsc."),
    Rule("T607", "The name of a schema says its place in the order.", "Name it 1.avsc, 2-add-city.avsc, or key.avsc."),
    Rule("T701", "A topic is in the environment before this one.", "Add it there first."),
    Rule("T702", "Schemas are in the environment before this one.", "Add them there first, in the same order."),
    Rule("T801", "The field of the archive's event time is in the newest schema.", "Correct `archive.event_time`."),
    Rule(
        "T802",
        "A warehouse loads topics of Avro with a schema of keys.",
        "Set `encoding` to avro and add schemas/key.avsc, or remove the warehouse.",
    ),
    Rule("T901", "A waiver counts until a day that is not past.", "Keep the rule, or agree on another day.", False),
    Rule("T902", "A waiver is for a rule that is broken.", "Remove the waiver.", False),
    Rule("T903", "A waiver is for a rule that can be waived.", "Keep the rule, and remove the waiver.", False),
)
RULES = {rule.code: rule for rule in _ALL}
