"""When an action takes effect, and what a session sees before: transactions in every form they come in."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from failure_matrix.evidence.records import Failure, ScenarioRecord, Verdict

CATALOGUES = Path(__file__).with_name("catalogues")

GOOD = (CATALOGUES / "transactions.yaml").read_text()

BAD = (CATALOGUES / "transactions-broken.yaml").read_text()

MORE = (CATALOGUES / "transactions-actions.yaml").read_text()


class Stage(Protocol):
    def scenarios(self, text: str, *more: str) -> dict[str, ScenarioRecord]: ...


def failures(record: ScenarioRecord) -> list[Failure]:
    return [*record.failures, *(failure for step in record.steps for failure in step.failures)]


def ids(text: str) -> list[str]:
    return [line.strip(" :") for line in text.splitlines() if line.startswith("  ") and line[2] != " "]


@pytest.fixture(scope="module")
def records(stage: Stage) -> dict[str, ScenarioRecord]:
    return stage.scenarios(GOOD, BAD, MORE)


@pytest.mark.parametrize("id", ids(GOOD))
def test_a_transaction_is_accounted_for(records: dict[str, ScenarioRecord], id: str) -> None:
    assert [(failure.message, failure.observed) for failure in failures(records[id])] == []
    assert records[id].verdict is Verdict.VERIFIED


@pytest.mark.parametrize(
    ("id", "said"),
    [
        (
            "a-change-that-nothing-carries-out",
            "A ran COMMIT: undeclared: job 2 went ready -> done; take declares no such move",
        ),
        (
            "an-action-on-another-row",
            "A did take-next: undeclared: job 2 went ready -> leased; take-next declares no such move",
        ),
        ("rolled-back-and-yet-done", "A ran COMMIT: undeclared: job 1 went ready -> leased; no action did it"),
        ("a-view-that-is-otherwise", "A did create: job 1 is fresh, expected ready"),
    ],
)
def test_what_is_not_declared_is_told(records: dict[str, ScenarioRecord], id: str, said: str) -> None:
    assert [failure.message for failure in failures(records[id])] == [said]


def moves(record: ScenarioRecord) -> list[tuple[str, tuple[str, ...], str, bool, str | None]]:
    return [(move.from_, move.by, move.to, move.late, move.session) for step in record.steps for move in step.moves]


def test_a_move_is_made_where_it_takes_effect(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["commit-answers-for-the-action"]) == [("ready", ("take",), "leased", False, None)]
    assert [len(step.moves) for step in records["commit-answers-for-the-action"].steps] == [0, 0, 1]


def test_a_path_of_several_moves_is_late(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["late"]) == [("ready", ("take", "lapses"), "expired", True, None)]


def test_a_path_goes_through_what_others_did_meanwhile(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["others-meanwhile"])[-1] == ("leased", ("finish",), "done", False, None)


def test_the_action_that_did_nothing_is_no_witness(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["a-refused-action-explains-nothing"]) == [("done", ("remove",), "absent", False, None)]


def test_a_move_that_stays_needs_a_row(records: dict[str, ScenarioRecord]) -> None:
    found = [[(move.key, move.to) for move in step.moves] for step in records["a-row-that-stays"].steps]
    assert found == [[], [(("2",), "ready")]]


def test_an_uncommitted_state_comes_and_goes_in_its_own_session(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["only-its-own-session-sees-it"]) == [
        ("absent", ("create",), "fresh", False, "A"),
        ("fresh", ("rollback",), "absent", False, "A"),
    ]


def test_an_open_transaction_is_recorded(records: dict[str, ScenarioRecord]) -> None:
    steps = records["commit-and-chain"].steps
    assert [step.in_transaction for step in steps] == [True, True, True, True, True, True, False]
