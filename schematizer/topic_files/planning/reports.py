"""A plan as text for people, as Markdown for merge requests, and as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from schematizer.topic_files.planning.differences import Action
from schematizer.topic_files.planning.things import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from schematizer.topic_files.planning.differences import Plan, Property, Step

_SIGNS = {
    Action.CREATE: "+",
    Action.CHANGE: "~",
    Action.DELETE: "-",
    Action.NOTE: "=",
    Action.FORGET: "=",
    Action.FOREIGN: "?",
}
_DIFF_SIGNS = {Action.CREATE: "+", Action.CHANGE: "!", Action.DELETE: "-"}
_LONGEST = 120
_MOST_MARKDOWN = 60_000  # characters; GitHub takes 65,536 in a comment


def as_text(plan: Plan, allowed: Collection[str] = ()) -> Iterator[str]:
    """Yield the lines of a report: each step, what is refused, and the sums."""
    for step in plan.steps:
        yield from step_lines(step, _SIGNS[step.action], allowed)
    yield summary(plan, allowed)


def summary(plan: Plan, allowed: Collection[str] = ()) -> str:
    """Return the sums in one line."""
    counts = Counter(step.action for step in plan.steps)
    noted = counts[Action.NOTE] + counts[Action.FORGET]
    words = [
        f"{counts[Action.CREATE]} to create",
        f"{counts[Action.CHANGE]} to change",
        f"{counts[Action.DELETE]} to delete",
        f"{len(plan.refused(allowed))} refused",
        f"{len(plan.drift())} changed by hand",
    ]
    if noted:
        words.append(f"{noted} only to note")
    return f"{plan.environment}: {', '.join(words)}"


def step_lines(step: Step, sign: str, allowed: Collection[str] = ()) -> Iterator[str]:
    """Yield the lines of one step."""
    yield f"{sign} {step.thing}{_remark(step)}"
    if step.action in (Action.CREATE, Action.CHANGE) and step.thing.kind is not Kind.RIGHT:
        for one in step.properties:
            yield f"    {_property(one, step.action)}"
    for danger in step.dangers:
        if danger.is_allowable and danger.flag in allowed:
            yield f"    allowed: {danger.name}: {danger.loss}"
        elif danger.is_allowable:
            yield f"    refused: {danger.name}: {danger.loss} To do it: --allow {danger.flag}"
        else:
            yield f"    refused: {danger.name}: {danger.loss}"


def as_markdown(plan: Plan, allowed: Collection[str] = ()) -> str:
    """Return a comment for a merge request: the sums, and the steps as a diff."""
    lines, size = [], 0
    for step in plan.steps:
        if step.action in (Action.NOTE, Action.FORGET):
            continue
        for line in step_lines(step, _DIFF_SIGNS.get(step.action, "#"), allowed):
            lines.append(line.replace("```", "'''"))
            size += len(line) + 1
        if size > _MOST_MARKDOWN:
            lines.append("# and more: see `topics plan`")
            break
    body = "\n".join(lines) or "# no change"
    return f"### Plan for {summary(plan, allowed)}\n\n```diff\n{body}\n```\n"


def as_json(plan: Plan, allowed: Collection[str] = ()) -> str:
    """Return the plan as one JSON object."""
    steps = [_as_dict(step) for step in plan.steps]
    refused = [danger.flag if danger.is_allowable else danger.name for danger in plan.refused(allowed)]
    return json.dumps({"environment": plan.environment, "steps": steps, "refused": refused}, ensure_ascii=False)


def _as_dict(step: Step) -> dict[str, Any]:
    properties = [
        {"name": one.name, "before": one.before, "after": one.after, "is_drift": one.is_drift}
        for one in step.properties
    ]
    return {
        "kind": step.thing.kind.value,
        "name": step.thing.name,
        "action": step.action.value,
        "is_drift": step.is_drift,
        "properties": properties,
        "dangers": [{"name": danger.name, "topic": danger.topic, "loss": danger.loss} for danger in step.dangers],
        "about": dict(step.about),
    }


def _remark(step: Step) -> str:
    if not step.is_drift:
        return ""
    words = {Action.CREATE: "removed by hand", Action.FOREIGN: "made by hand"}.get(step.action, "changed by hand")
    owner = f"; owner: {step.about['owner']} ({step.about['contact']})" if "owner" in step.about else ""
    return f"    # {words}{owner}"


def _property(one: Property, action: Action) -> str:
    if action is Action.CREATE:
        return f"{one.name}: {_value(one.after)}"
    drift = f"    # by hand: {_value(one.applied)} was applied" if one.is_drift else ""
    return f"{one.name}: {_value(one.before)} -> {_value(one.after)}{drift}"


def _value(value: object) -> str:
    text = "(none)" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
