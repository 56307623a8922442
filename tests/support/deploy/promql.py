"""As much of PromQL as the alerts use, evaluated at one moment: what Prometheus's own promtool is asked where it is."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from promql_parser import AggregateExpr, BinaryExpr, NumberLiteral, VectorSelector, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

COMPARISONS: dict[str, Callable[[float, float], bool]] = {"==": operator.eq, ">": operator.gt, "<": operator.lt}


class Sample(NamedTuple):
    """A series' value at the moment; `labels` without the metric's name."""

    name: str
    labels: frozenset[tuple[str, str]]
    value: float


Answer: TypeAlias = "dict[frozenset[tuple[str, str]], float]"


def evaluate(expression: str, samples: Iterable[Sample]) -> Answer:
    """The labels and values of what the expression finds; NotImplementedError for what no alert has used yet."""
    found = _evaluate(parse(expression), list(samples))
    assert isinstance(found, dict), "an alert's expression finds series"
    return found


def _evaluate(expression: Any, samples: list[Sample]) -> Answer | float:  # noqa: ANN401 - the parser's, untyped
    match expression:
        case NumberLiteral():
            return float(expression.val)
        case VectorSelector():
            return dict(_select(expression, samples))
        case AggregateExpr() if str(expression.op) == "sum" and expression.modifier is None:
            summed = _evaluate(expression.expr, samples)
            assert isinstance(summed, dict)
            return {frozenset(): sum(summed.values())} if summed else {}
        case BinaryExpr() if expression.modifier is None or not expression.modifier:
            return _combine(str(expression.op), _evaluate(expression.lhs, samples), _evaluate(expression.rhs, samples))
    raise NotImplementedError(expression.prettify())


def _select(selector: VectorSelector, samples: list[Sample]) -> Iterator[tuple[frozenset[tuple[str, str]], float]]:
    matchers = selector.matchers.matchers
    if any(str(each.op) != "MatchOp.Equal" for each in matchers):
        raise NotImplementedError(selector.prettify())
    wanted = {(each.name, each.value) for each in matchers}
    for sample in samples:
        if sample.name == selector.name and wanted <= sample.labels:
            yield sample.labels, sample.value


def _combine(op: str, left: Answer | float, right: Answer | float) -> Answer:
    """Series meet those of the same labels; a comparison leaves out what it does not hold for."""
    if isinstance(left, float):
        assert isinstance(right, dict)
        assert op == "*", "a number stands on the left of a product only"
        return {labels: left * value for labels, value in right.items()}
    others = right if isinstance(right, dict) else dict.fromkeys(left, right)
    holds = COMPARISONS[op]
    return {labels: value for labels, value in left.items() if labels in others and holds(value, others[labels])}
