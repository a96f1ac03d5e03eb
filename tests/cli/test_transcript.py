"""`--verbose`: every step on its line, with what it left behind."""

from __future__ import annotations

from failure_matrix.cli.transcript import transcript
from failure_matrix.evidence.records import Evidence, ScenarioRecord, Seen, StepRecord, Verdict


def _step(number: int, session: str | None, verb: str, **more: object) -> StepRecord:
    return StepRecord.model_validate({"number": number, "in": session, "verb": verb, "text": "clock 10", **more})


def test_a_scenario_step_by_step(verified: Evidence) -> None:
    change = {"subject": "job", "key": ("1",), "from": "ready", "to": "done"}
    error = {"severity": "ERROR", "sqlstate": "23505", "message": "duplicate \x1b[2Jkey"}
    record = ScenarioRecord(
        id="finish-once",
        title="A job is finished once",
        verdict=Verdict.VERIFIED,
        fingerprint="f",
        given=(Seen(subject="job", key=("1",), state="ready"),),
        steps=(
            _step(1, "A", "do", name="finish", rows=1, moves=(change,), **{"with": {"id": "1", "by": None}}),
            _step(2, "B2", "do", name="finish", rows=0, waits=("A",), released_by=3),
            _step(3, None, "at"),
            _step(4, "A", "sql", text="INSERT INTO job VALUES ($1)", error=error, breaks=("one-job",)),
        ),
        not_run=(5, 6),
    )
    assert list(transcript(verified.model_copy(update={"scenarios": (record,)}), 80)) == [
        "",
        "finish-once: A job is finished once",
        "     -   given: job 1 is ready",
        "  1  A   finish (id 1, by null): 1 row; job 1: ready -> done",
        "  2  B2  finish: 0 rows; waits for A until step 3",
        "  3  -   clock 10",
        "  4  A   INSERT INTO job VALUES ($1): ERROR 23505: duplicate \\x1b[2Jkey; breaks",
        "         one-job, as declared",
        "     not run: step 5, 6",
    ]
