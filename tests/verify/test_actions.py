"""What actions may do: callers and offers, targets of several kinds, other rows, hazards."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from failure_matrix.evidence.records import Evidence, ScenarioRecord

ACTIONS = (Path(__file__).with_name("catalogues") / "actions.yaml").read_text()


class Stage(Protocol):
    def prove(self, *texts: str) -> Evidence: ...


@pytest.fixture(scope="module")
def records(stage: Stage) -> dict[str, ScenarioRecord]:
    return {record.id: record for record in stage.prove(ACTIONS).scenarios}


@pytest.mark.parametrize(
    "id",
    ["as-a-caller", "as-another-caller", "a-target-by-parameter", "also", "several-targets", "a-hazard"],
)
def test_an_action_does_what_it_declares(records: dict[str, ScenarioRecord], id: str) -> None:
    assert records[id].because is None


@pytest.mark.parametrize(
    ("id", "because"),
    [
        (
            "a-target-by-parameter-otherwise",
            (
                "A ran UPDATE job SET state = 'done' WHERE id…: undeclared: job 1 went held -> done;"
                " end declares no such move"
            ),
        ),
        ("no-hazard", "A did delete: undeclared: job 1 went held -> absent; delete declares no such move"),
        ("no-time-at-all", "A ran SELECT pg_sleep(60): no answer within 0.001 s"),
    ],
)
def test_what_it_does_beside_that_is_told(records: dict[str, ScenarioRecord], id: str, because: str) -> None:
    assert records[id].because == because


def test_bound_parameters_are_recorded(records: dict[str, ScenarioRecord]) -> None:
    assert records["as-a-caller"].steps[0].with_ == {"id": "1", "owner": "A", "epoch": "3", "as": "done"}
    last = records["as-another-caller"].steps[-1]
    assert last.with_["epoch"] == "3"


def test_each_row_has_its_own_move(records: dict[str, ScenarioRecord]) -> None:
    moves = [(move.key, move.from_, move.by, move.to) for move in records["also"].steps[0].moves]
    assert moves == [(("1",), "held", ("finish",), "done"), (("2",), "blocked", ("finish",), "ready")]
