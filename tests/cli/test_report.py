"""The report of `matrix verify`: golden at two widths, and rules that hold at any."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failure_matrix.catalogue.model import Catalogue, Scenario, Settings
from failure_matrix.cli.report import code, report, short
from failure_matrix.cli.terminal import NARROWEST, cells
from failure_matrix.evidence.records import (
    CellRecord,
    Count,
    Evidence,
    GuardRecord,
    OrderRecord,
    Orders,
    PopulationRecord,
    StateRecord,
    Verdict,
)

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("name", ["verified", "broken"])
def test_golden(name: str, columns: int, request: pytest.FixtureRequest) -> None:
    lines = report(request.getfixturevalue(name), columns, written=".matrix/evidence.json")
    assert "".join(f"{line}\n" for line in lines) == (GOLDEN / f"{name}-{columns}.txt").read_text(encoding="utf-8")


def test_worst_first_and_the_verdict_last(broken: Evidence) -> None:
    lines = list(report(broken, 80))
    words = [line.split()[0] for line in lines[1:-2] if line and line[0] != " "]
    assert words == ["broken", "incomplete", "stale", "unreached", "waived", "verified"]
    assert lines[-1].endswith("exit 1")
    assert lines[-2].startswith("broken: ")


def test_the_counts_of_the_last_line_are_the_rows_above(broken: Evidence) -> None:
    lines = list(report(broken, 200))
    parts = [part.split() for part in lines[-1].split(": ")[1].split(".")[0].split(", ")]
    counted = {word: int(number) for number, word in parts}
    rows = [line.split()[0] for line in lines[1:-1] if line and line[0] != " "]
    for verdict in ("broken", "incomplete", "stale", "unreached", "waived"):
        assert counted[verdict] == rows.count(verdict)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_exit_code_is_the_verdicts(verdict: Verdict, verified: Evidence) -> None:
    seen = verified.model_copy(update={"verdict": verdict})
    assert code(seen.verdict) == (0 if verdict in ("verified", "waived") else 1)
    assert list(report(seen, 80))[-1].endswith(f"exit {code(seen.verdict)}")


@given(why=st.text(min_size=1), columns=st.integers(NARROWEST, 120))
def test_no_text_leaves_its_line_or_steers_the_terminal(verified: Evidence, why: str, columns: int) -> None:
    state = StateRecord(id="x", subject="job", verdict=Verdict.STALE, because=why, fingerprint="s")
    for line in report(verified.model_copy(update={"states": (state,)}), columns):
        assert cells(line) <= columns
        assert line.isprintable()


@pytest.mark.parametrize("escape", ["\x1b[2J", "\x9b31m", "\r", "\u202e", "\u2066", "\b", "\x07"])
def test_an_escape_in_a_value_is_spelled_out(escape: str, broken: Evidence) -> None:
    step = broken.scenarios[1].steps[0]
    failure = step.failures[0].model_copy(update={"observed": f"row{escape}s"})
    scenario = broken.scenarios[1].model_copy(
        update={"steps": (step.model_copy(update={"failures": (failure,)}),), "id": "stale-publication"}
    )
    text = "\n".join(report(broken.model_copy(update={"scenarios": (scenario,)}), 80))
    assert escape not in text
    assert f"row{escape.encode('unicode_escape').decode()}s" in text


def test_cells_guards_and_populations_are_reported_and_what_proves_nothing_is_not(verified: Evidence) -> None:
    cell = {"state": "leased", "action": "publish", "expected": "refused", "observed": "moved"}
    guard = {"action": "publish", "guard": "epoch = :epoch", "part": "condition"}
    parts = {
        "cells": (
            CellRecord.model_validate({**cell, "caller": "former", "verdict": "broken", "because": "it moved"}),
            CellRecord.model_validate({**cell, "caller": "newcomer", "observed": "cannot call", "verdict": None}),
        ),
        "guards": (
            GuardRecord.model_validate({**guard, "outcome": "missed", "verdict": "broken", "because": "unnoticed"}),
            GuardRecord.model_validate({**guard, "guard": "x", "outcome": "not removable", "verdict": None}),
        ),
        "population": (
            PopulationRecord.model_validate(
                {
                    "subject": "job",
                    "combinations": 8,
                    "admitted": 4,
                    "hits": {},
                    "verdict": "incomplete",
                    "because": "no hit",
                }
            ),
        ),
    }
    lines = list(report(verified.model_copy(update={**parts, "verdict": Verdict.BROKEN}), 80))
    assert lines[0].endswith("1 scenario, 1 state, 2 cells, 2 guards")
    assert lines[2:5] == [
        "broken      cell leased, publish, former: it moved",
        "broken      guard epoch = :epoch in publish: unnoticed",
        "incomplete  population job: no hit",
    ]
    assert lines[-1].startswith("broken: 2 broken, 1 incomplete, 2 verified.")


def test_an_order_that_failed_is_named(broken: Evidence) -> None:
    scenario = broken.scenarios[1]
    orders = Orders(exist=6, ran=6, failed=1, failing=OrderRecord(steps=scenario.steps))
    alone = scenario.model_copy(update={"steps": (), "orders": orders})
    lines = list(report(broken.model_copy(update={"scenarios": (alone,)}), 80))
    assert "            order 6, step 6: A did publish: 1 row, expected 0" in lines


def _requiring(percent: int | None) -> Catalogue:
    return Catalogue(settings=Settings(title="x", require=percent), scenarios={"finish-once": ONCE})


ONCE = Scenario(title="Once", steps=())


@pytest.mark.parametrize(
    ("catalogue", "option", "said"), [(100, None, 1), (75, None, 0), (100, 75, 0), (None, 76, 1), (None, None, 0)]
)
def test_coverage_that_falls_short_is_said_and_gives_exit_1(
    verified: Evidence, catalogue: int | None, option: int | None, said: int
) -> None:
    seen = verified.model_copy(update={"coverage": {"guards": Count(of=4, verified=2, waived=1)}})
    lines = short(seen, _requiring(catalogue), option)
    assert len(lines) == said
    assert code(seen.verdict, lines) == said
    assert ("short       guards: 3 of 4 verified or waived" in "\n".join(report(seen, 80, short=lines))) == bool(said)


def test_a_run_of_some_scenarios_asks_for_no_coverage(verified: Evidence) -> None:
    more = Catalogue(settings=Settings(title="x", require=100), scenarios={"finish-once": ONCE, "other": ONCE})
    seen = verified.model_copy(update={"coverage": {"guards": Count(of=4, verified=2)}})
    assert short(seen, more, None) == ()
