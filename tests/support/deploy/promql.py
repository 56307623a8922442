"""Evaluate, at one moment, the part of PromQL that the alerts and the dashboards use.

Prometheus's own promtool is asked for the same of the alerts where it is, and `make verify WHAT=dashboards` asks a
Prometheus for all of it.
"""

from __future__ import annotations

import math
import operator
import re
import statistics
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    MatrixSelector,
    NumberLiteral,
    ParenExpr,
    VectorSelector,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

COMPARISONS: dict[str, Callable[[float, float], bool]] = {"==": operator.eq, ">": operator.gt, "<": operator.lt}


def _divided(first: float, second: float) -> float:
    """Divide as floating point does, also by 0."""
    if second:
        return first / second
    return math.nan if not first else math.copysign(math.inf, first)


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}
AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "max": max,
    "min": min,
    "avg": statistics.fmean,
    "count": len,
}
MATCHERS: dict[str, Callable[[str, str], bool]] = {
    "MatchOp.Equal": lambda wanted, value: wanted == value,
    "MatchOp.NotEqual": lambda wanted, value: wanted != value,
    "MatchOp.Re": lambda wanted, value: re.fullmatch(wanted, value) is not None,
}


class Sample(NamedTuple):
    """A series' value at the moment; `labels` without the metric's name.

    `growth`: by how much it has grown each second until now, steadily.
    """

    name: str
    labels: frozenset[tuple[str, str]]
    value: float
    growth: float = 0.0


Labels: TypeAlias = "frozenset[tuple[str, str]]"
Answer: TypeAlias = "dict[Labels, float]"


def evaluate(expression: str, samples: Iterable[Sample]) -> Answer:
    """The labels and values of what the expression finds; NotImplementedError for what no expression has used yet."""
    found = _evaluate(parse(expression), list(samples))
    assert isinstance(found, dict), "each expression finds series"
    return found


def selected(series: str, value: float, growth: float, labels: Iterable[tuple[str, str]]) -> Sample:
    """A sample of a series that is written as in a query: `name`, or `name{label="value"}`."""
    selector = parse(series)
    assert isinstance(selector, VectorSelector)
    assert selector.name is not None
    own = [(matcher.name, matcher.value) for matcher in selector.matchers.matchers]
    return Sample(selector.name, frozenset([*own, *labels]), value, growth)


def _evaluate(expression: Any, samples: list[Sample]) -> Answer | float:  # noqa: ANN401 - the parser's, untyped
    match expression:
        case NumberLiteral():
            return float(expression.val)
        case ParenExpr():
            return _evaluate(expression.expr, samples)
        case VectorSelector():
            return {sample.labels: sample.value for sample in _select(expression, samples)}
        case AggregateExpr():
            return _aggregate(expression, samples)
        case Call():
            return _call(expression, samples)
        case BinaryExpr() if expression.modifier is None or not expression.modifier:
            return _combine(str(expression.op), _evaluate(expression.lhs, samples), _evaluate(expression.rhs, samples))
    raise NotImplementedError(expression.prettify())


def _select(selector: VectorSelector, samples: list[Sample]) -> Iterator[Sample]:
    matchers = [(matcher.name, MATCHERS[str(matcher.op)], matcher.value) for matcher in selector.matchers.matchers]
    for sample in samples:
        labels = dict(sample.labels)
        if sample.name == selector.name and all(fits(value, labels.get(name, "")) for name, fits, value in matchers):
            yield sample


def _aggregate(expression: AggregateExpr, samples: list[Sample]) -> Answer:
    """All together, or `by` labels."""
    modifier = expression.modifier
    if modifier is not None and "By" not in str(modifier.type):
        raise NotImplementedError(expression.prettify())
    by = frozenset(modifier.labels) if modifier is not None else frozenset()
    groups: dict[Labels, list[float]] = {}
    for labels, value in _series(expression.expr, samples).items():
        groups.setdefault(frozenset(label for label in labels if label[0] in by), []).append(value)
    return {labels: float(AGGREGATES[str(expression.op)](values)) for labels, values in groups.items()}


def _call(expression: Call, samples: list[Sample]) -> Answer:
    match expression.func.name, expression.args:
        case "rate", [MatrixSelector() as window]:
            return {sample.labels: sample.growth for sample in _select(window.vector_selector, samples)}
        case "increase", [MatrixSelector() as window]:
            seconds = window.range.total_seconds()
            return {sample.labels: sample.growth * seconds for sample in _select(window.vector_selector, samples)}
        case "histogram_quantile", [NumberLiteral() as share, buckets]:
            return _quantiles(share.val, _series(buckets, samples))
    raise NotImplementedError(expression.prettify())


def _series(expression: Any, samples: list[Sample]) -> Answer:  # noqa: ANN401 - the parser's, untyped
    found = _evaluate(expression, samples)
    assert isinstance(found, dict)
    return found


def _quantiles(share: float, buckets: Answer) -> Answer:
    """The quantile of each histogram, interpolated as Prometheus does: within the bucket that holds it, from 0 on."""
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in buckets.items():
        bounds = [float(value) for name, value in labels if name == "le"]
        others = frozenset(label for label in labels if label[0] != "le")
        histograms.setdefault(others, []).extend((bound, count) for bound in bounds)
    return {labels: _quantile(share, sorted(found)) for labels, found in histograms.items()}


def _quantile(share: float, buckets: list[tuple[float, float]]) -> float:
    """`buckets`: (upper bound, observations up to it)."""
    rank, lower, below = share * buckets[-1][1], 0.0, 0.0
    if not buckets[-1][1]:
        return math.nan
    for upper, count in buckets:
        if count >= rank:
            return lower if upper == math.inf else lower + (upper - lower) * (rank - below) / (count - below)
        lower, below = upper, count
    raise AssertionError("the last bucket holds all")


def _combine(op: str, left: Answer | float, right: Answer | float) -> Answer:
    """Series meet those of the same labels; a comparison leaves out what it does not hold for."""
    if isinstance(left, float):
        assert isinstance(right, dict), "no query compares two numbers"
        if op in COMPARISONS:
            raise NotImplementedError("a number stands on the right of a comparison")
        return {labels: ARITHMETIC[op](left, value) for labels, value in right.items()}
    others = right if isinstance(right, dict) else dict.fromkeys(left, right)
    pairs = {labels: (value, others[labels]) for labels, value in left.items() if labels in others}
    if op in COMPARISONS:
        return {labels: first for labels, (first, second) in pairs.items() if COMPARISONS[op](first, second)}
    return {labels: ARITHMETIC[op](first, second) for labels, (first, second) in pairs.items()}
