"""The questions of dev.verify.dashboards, and its judgement of the answers; the run itself needs servers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from cdc_common.errors.codes import CdcError, Code
from dev.verify.dashboards import prometheus
from dev.verify.dashboards.__main__ import QUIET, Finding, alert_findings, panel_findings, reason_of, selectors, show
from tests.support.deploy.alert_rules import RULES
from tests.support.deploy.dashboards import PANELS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXPRESSIONS = [
    *(target["expr"] for panels in PANELS.values() for panel in panels for target in panel["targets"]),
    *(rule["expr"] for rule in RULES.values()),
]


class FakePrometheus:
    """Finds one series for all that `finds` says yes to."""

    def __init__(self, finds: Callable[[str], bool]) -> None:
        self.finds = finds

    def values(self, expression: str) -> list[float]:
        return [1.0] if self.finds(expression) else []

    def rules(self) -> dict[str, dict[str, Any]]:
        return {name: {"health": "ok", "state": "inactive"} for name in RULES}


def judged(finds: Callable[[str], bool]) -> tuple[list[Finding], str]:
    """Return the findings that are wrong, and the last line that is shown."""
    fake: Any = FakePrometheus(finds)
    found = [*panel_findings(fake), *alert_findings(fake)]
    shown = io.StringIO()
    wrong = [finding for finding in found if not finding.is_good]
    assert show(Console(file=shown, width=1000), found) is not bool(wrong)
    return wrong, shown.getvalue().splitlines()[-1]


def is_no_alert(expression: str) -> bool:
    return expression not in {rule["expr"] for rule in RULES.values()}


def test_all_is_well() -> None:
    wrong, line = judged(lambda expression: is_no_alert(expression) and not reason_of(expression))
    assert wrong == []
    assert f"{len(RULES)} alerts evaluated" in line
    assert line.endswith("0 wrong")


def test_a_panel_without_data_is_wrong_unless_its_reason_is_known() -> None:
    wrong, _ = judged(lambda expression: is_no_alert(expression) and "cdc_publisher_lag_seconds" not in expression)
    assert {finding.place for finding in wrong} == {
        "publishers: Lag",
        "overview: Lag of the publishers",
        "alert CdcPublisherLags",
    }


def test_an_alert_that_fires_is_wrong() -> None:
    firing = RULES["CdcRawFull"]["expr"]
    wrong, _ = judged(lambda expression: is_no_alert(expression) or expression == firing)
    assert [(finding.place, finding.wrong) for finding in wrong] == [
        ("alert CdcRawFull", "it finds something while all is well (inactive)")
    ]


def test_an_alert_that_prometheus_cannot_evaluate_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {name: {"health": "err", "state": "inactive", "lastError": "many-to-many"} for name in RULES}
    monkeypatch.setattr(FakePrometheus, "rules", lambda _: broken)
    wrong, _ = judged(is_no_alert)
    assert len(wrong) == len(RULES)
    assert wrong[0].wrong == "err: many-to-many"


def test_selectors_are_found_wherever_they_stand() -> None:
    nested = 'histogram_quantile(0.9, sum by (le) (rate(a_bucket{x=~"b|c"}[5m]))) > max(d) / e'
    assert selectors(nested) == ['a_bucket{x=~"b|c"}', "d", "e"]


def test_each_known_reason_is_of_something_that_is_asked() -> None:
    assert QUIET.keys() <= {selector for expression in EXPRESSIONS for selector in selectors(expression)}


def test_without_a_prometheus_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CdcError, match="no prometheus on the PATH") as caught:
        prometheus.binary(tmp_path)
    assert caught.value.code is Code.STACK_MISSING
