"""What evidence tells: the same bytes each time, and nothing of what is hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import pytest

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence import files
from failure_matrix.evidence.records import Evidence, ScenarioRecord
from failure_matrix.verify import verify

CATALOGUES = Path(__file__).with_name("catalogues")

SECRET, OTHER = "s3cret-holder", "0therwise"

HIDDEN = (CATALOGUES / "hidden.yaml").read_text()


class Stage(Protocol):
    server: Server

    def catalogue(self, *texts: str) -> Catalogue: ...

    def prove(self, *texts: str) -> Evidence: ...

    def scenarios(self, text: str, *more: str) -> dict[str, ScenarioRecord]: ...


def text(evidence: Evidence) -> str:
    """The file without what may differ."""
    return files.text(evidence.model_copy(update={"run": None}))


@pytest.fixture(scope="module")
def hidden(stage: Stage) -> Evidence:
    return verify(stage.catalogue(HIDDEN), stage.server)  # sweep and guards tell things too


def test_what_is_hidden_is_nowhere(hidden: Evidence) -> None:
    told = files.text(hidden)
    assert SECRET not in told
    assert SECRET.upper() not in told.replace("1" + SECRET.upper(), "")  # what SQL made of it is another value
    assert OTHER not in told
    assert "qZ" not in told
    assert "(hidden)" in told


def test_what_the_record_answers_is_told_without_it(hidden: Evidence) -> None:
    answers = {answer for cell in hidden.cells for answer in cell.answers}
    assert "of (hidden), (hidden), (hidden), (hidden), used" in answers
    assert not [answer for answer in answers if "secret" in answer]


def test_only_what_is_hidden_is(hidden: Evidence) -> None:
    records = {record.id: record for record in hidden.scenarios}
    assert [record.because for record in hidden.scenarios[:1]] == [None]
    short = records["short"].steps[0].returns
    assert short is not None
    assert short.rows == (("(hidden)", "5"),)  # a number is not looked for
    first = records["good"].steps[0]
    assert first.returns is not None
    assert first.returns.rows == (("1", "(hidden)", "(hidden)"),)
    told = {id: record.steps[-1].failures[0] for id, record in records.items() if record.steps[-1].failures}
    assert (told["other-rows"].expected, told["other-rows"].observed) == (
        "owner (hidden), tenant (hidden), id 2", "owner (hidden), tenant (hidden), id 1",
    )  # fmt: skip
    assert told["other-list"].observed == "id 1, owner (hidden)"
    assert told["unexpected-error"].observed == "P0001: not for (hidden)"
    assert told["other-notice"].observed == "held by (hidden)"
    assert json.loads(told["untidy"].observed)["id"] == 1
    assert told["undeclared"].observed == "job 1 is new: state new"


VARYING = (CATALOGUES / "varying.yaml").read_text()


def test_two_runs_give_the_same_bytes_although_values_vary(stage: Stage, queue: str) -> None:
    catalogue = stage.catalogue(queue, VARYING)
    first, second = (verify(catalogue, stage.server, quick=True) for _ in range(2))
    assert first.run is not second.run
    assert text(first) == text(second)


def test_what_varies_is_named_in_order_of_appearance(stage: Stage) -> None:
    records = stage.scenarios(VARYING)
    steps = records["varying"].steps
    rows = [step.returns.rows[0] if step.returns else () for step in steps]
    assert rows[0] == ("uuid-1", "moment-1", "moment-2", "xid8-1", "lsn-1")
    assert rows[1] == ("uuid-1", "x uuid-1 y", '{"k": "uuid-1"}', "{uuid-1}")
    assert steps[1].with_ == {"token": "uuid-1"}
    assert rows[2] == ("snapshot-1", "t", "date-1", "oid-1", "1259")
    assert rows[3] == ("pid of A", "pid of A", "{pid of A}")
    assert steps[4].with_ == {"pid": "pid of A"}
    assert rows[4] == ("pid of A", "A")
    assert rows[6] == ("pid of A",)
    assert steps[7].with_["owner"] == "uuid-1"
    assert steps[8].notices == ("uuid-1 at moment-3",)
    assert steps[9].error is not None
    assert steps[9].error.message == "uuid-1"
    assert steps[10].failures[0].observed == "owner uuid-1, clock_timestamp moment-4, pg_backend_pid pid of A"
    steady = records["steady"].steps[0].returns
    assert steady is not None
    assert steady.rows == (("2001-02-03 04:05:06+00", "infinity", "2001-02-03", "4711", "11111111"),)
