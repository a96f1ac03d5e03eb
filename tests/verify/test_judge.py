"""Each expectation against an answer: what holds gives nothing, what does not gives one failure that tells it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from failure_matrix.catalogue.model import Step
from failure_matrix.database.answers import Answer, Result, ServerError
from failure_matrix.database.classify import Misfit
from failure_matrix.evidence.records import Failure
from failure_matrix.verify.judge import Blame, Court, Standing

TWO = Result(tag="SELECT 2", affected=2, columns=("id", "name"), rows=(("1", "a"), ("2", None)))
NONE = Result(tag="UPDATE 0", affected=0)
DONE = Result(tag="BEGIN")
GONE = ServerError(severity="ERROR", sqlstate="23505", message="it is there", constraint="job_pkey")


def court(hidden: frozenset[str] = frozenset(), kept: dict[str, str] | None = None, **step: Any) -> Court:
    blame = Blame(states=("ready",), actions=("take",))
    place = "matrix.yaml"
    return Court(
        step=Step.model_validate(step),
        where="A did take",
        place=lambda *path: f"{place}:{'.'.join(map(str, path))}",
        kept=kept or {},
        hidden=hidden,
        blame=blame,
    )


def told(failures: Iterable[Failure]) -> list[tuple[str, str, str, str, str]]:
    return [(each.kind, each.message, each.expected, each.observed, each.place) for each in failures]


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ({}, Answer(results=(TWO,))),
        ({"rows": 2}, Answer(results=(TWO,))),
        ({"rows": 0}, Answer(results=(TWO, NONE))),
        ({"returns": [{"name": "a", "id": 1}, {"id": 2, "name": None}]}, Answer(results=(TWO,))),
        ({"returns": [[1, "a"], [2, None]]}, Answer(results=(DONE, TWO))),
        ({"returns": []}, Answer(results=(NONE,))),
        ({"results": [None, [[1, "a"], {"id": 2, "name": None}], 0]}, Answer(results=(DONE, TWO, NONE))),
        ({"error": "23505"}, Answer(error=GONE)),
        ({"error": {"sqlstate": "23505", "constraint": "job_pkey"}}, Answer(results=(TWO,), error=GONE)),
        ({"error": "23505", "rows": 7, "returns": [[1]]}, Answer(error=GONE)),
        ({"notice": ["one", "two"]}, Answer(notices=("one", "two"))),
        ({"notice": "of $who"}, Answer(notices=("of A",))),
        ({"returns": [["$who", "$$"]]}, Answer(results=(Result(tag="", columns=("a", "b"), rows=(("A", "$"),)),))),
    ],
)
def test_what_holds(step: dict[str, Any], answer: Answer) -> None:
    assert told(court(kept={"who": "A"}, **step).answer(answer)) == []


@pytest.mark.parametrize(
    ("step", "answer", "failure"),
    [
        ({"rows": 1}, Answer(results=(TWO,)), ("rows", "2 rows, expected 1", "1 row", "2 rows", "rows")),
        ({"rows": 1}, Answer(results=(DONE,)), ("rows", "no row count, expected 1", "1 row", "no row count", "rows")),
        ({"rows": 0}, Answer(), ("rows", "no row count, expected 0", "0 rows", "no row count", "rows")),
        (
            {"returns": [[1, "a"], [2, ""]]}, Answer(results=(TWO,)),
            ("returns", "row 2: name is null, expected ''", "1, a; 2, ''", "id 1, name a; id 2, name null", "returns"),
        ),
        (
            {"returns": [{"id": 1, "name": "a"}]}, Answer(results=(TWO,)),
            ("returns", "2 rows, expected 1", "id 1, name a", "id 1, name a; id 2, name null", "returns"),
        ),
        (
            {"returns": [{"id": 1}, {"id": 2}]}, Answer(results=(TWO,)),
            (
                "returns", "other columns: id, name; expected columns id",
                "id 1; id 2", "id 1, name a; id 2, name null", "returns",
            ),
        ),
        (
            {"returns": [[1], [2]]}, Answer(results=(TWO,)),
            (
                "returns", "other columns: id, name; expected 1 columns",
                "1; 2", "id 1, name a; id 2, name null", "returns",
            ),
        ),
        (
            {"returns": [[1]]}, Answer(results=(NONE,)),
            ("returns", "other columns: none; expected 1 columns", "1", "no row", "returns"),
        ),
        (
            {"results": [None]}, Answer(results=(DONE, TWO)),
            ("returns", "2 results, expected 1", "1 results", "2 results", "results"),
        ),
        (
            {"results": [None, 1]}, Answer(results=(DONE, TWO)),
            ("rows", "result 2: 2 rows, expected 1", "1 row", "2 rows", "results.1"),
        ),
        (
            {"error": "23505"}, Answer(results=(NONE,)),
            ("error", "no error, expected 23505", "23505", "no error, 0 rows", "error"),
        ),
        (
            {}, Answer(error=GONE),
            ("error", "error 23505 (job_pkey): it is there", "no error", "23505 (job_pkey): it is there", ""),
        ),
        (
            {"error": "40001"}, Answer(error=GONE),
            (
                "error", "error 23505 (job_pkey): it is there, expected 40001",
                "40001", "23505 (job_pkey): it is there", "error",
            ),
        ),
        (
            {"error": {"sqlstate": "23505", "constraint": "other"}}, Answer(error=GONE),
            (
                "error", "error 23505 (job_pkey): it is there, expected 23505 (other)",
                "23505 (other)", "23505 (job_pkey): it is there", "error",
            ),
        ),
        ({}, Answer(lost=True), ("error", "the connection was lost", "no error", "the connection was lost", "")),
        (
            {"notice": []}, Answer(notices=("a",)),
            ("notice", "other notices than expected", "no notice", "a", "notice"),
        ),
        (
            {"notice": ["a", "b"]}, Answer(notices=("b", "a")),
            ("notice", "other notices than expected", "a; b", "b; a", "notice"),
        ),
    ],
)  # fmt: skip
def test_what_does_not(step: dict[str, Any], answer: Answer, failure: tuple[str, str, str, str, str]) -> None:
    kind, message, expected, observed, place = failure
    assert told(court(**step).answer(answer)) == [
        (kind, f"A did take: {message}", expected, observed, f"matrix.yaml:{place}")
    ]


def test_a_failure_blames_the_action_and_the_state() -> None:
    (failure,) = court(rows=1).answer(Answer(results=(TWO,)))
    assert (failure.states, failure.actions) == (("ready",), ("take",))


def test_hidden_columns_are_not_told() -> None:
    hidden = frozenset({"name"})
    for expected in ({"id": 9, "name": "b"}, [9, "b"]):
        (failure,) = court(hidden, returns=[expected]).answer(Answer(results=(TWO,)))
        assert failure.observed == "id 1, name (hidden); id 2, name (hidden)"
        assert "b" not in failure.expected
    (failure,) = court(hidden, returns=[[1, "b"], [2, None]]).answer(Answer(results=(TWO,)))
    assert failure.message == "A did take: row 1: name is (hidden), expected (hidden)"


@pytest.mark.parametrize(
    ("waits", "observed", "message"),
    [
        (None, [], None),
        (["A"], ["A"], None),
        (["A", "B"], ["B", "A"], None),
        (["maybe"], ["A"], None),
        (["maybe"], [], None),
        (None, ["A"], "waits for A, expected: does not wait"),
        (["A"], [], "does not wait, expected: waits for A"),
        (["A"], ["B"], "waits for B, expected: waits for A"),
        (["A"], ["A", "B"], "waits for A, B, expected: waits for A"),
    ],
)
def test_waiting(waits: list[str] | None, observed: list[str], message: str | None) -> None:
    found = [failure.message for failure in court(waits=waits).waits(observed)]
    assert found == ([f"A did take: {message}"] if message else [])


@pytest.mark.parametrize(
    ("releases", "observed", "message"),
    [
        ([], [], None),
        (["B", "C"], ["C", "B"], None),
        (["B"], [], "released nobody, expected B"),
        ([], ["B"], "released B, expected nobody"),
        (["B"], ["B", "C"], "released B, C, expected B"),
    ],
)
def test_releasing(releases: list[str], observed: list[str], message: str | None) -> None:
    found = [failure.message for failure in court(releases=releases).releases(observed)]
    assert found == ([f"A did take: {message}"] if message else [])


STANDING: Standing = {
    ("job", ("1",)): "ready",
    ("job", ("a", "2")): "done",
    ("job", ("3",)): Misfit(kind="ambiguous", states=("ready", "done"), rows=()),
}


@pytest.mark.parametrize(
    ("expected", "messages"),
    [
        ({1: "ready", 9: "absent"}, []),
        ({("a", 2): "done"}, []),
        ({"$one": "$state"}, []),
        ({3: "done"}, []),  # that it is in no one state is told by itself
        ({1: "done"}, ["job 1 is ready, expected done"]),
        ({1: "absent"}, ["job 1 is ready, expected absent"]),
        ({9: "ready", ("a", 2): "ready"}, ["job 9 is absent, expected ready", "job a, 2 is done, expected ready"]),
    ],
)
def test_states(expected: dict[Any, str], messages: list[str]) -> None:
    asked = court(kept={"one": "1", "state": "ready"}, then={"job": expected}, seen_by={"B": {"job": expected}})
    for failures in (list(asked.then(STANDING)), list(asked.seen_by("B", STANDING))):
        assert [failure.message.removeprefix("A did take: ") for failure in failures] == messages
    kinds = {failure.kind for failure in asked.then(STANDING)} | {each.kind for each in asked.seen_by("B", STANDING)}
    assert kinds == ({"then", "seen-by"} if messages else set())


def test_a_wrong_state_puts_both_in_doubt() -> None:
    (failure,) = court(then={"job": {1: "done"}}).then(STANDING)
    assert failure.states == ("ready", "done")


@pytest.mark.parametrize(
    ("breaks", "occurred", "message"),
    [
        ([], ["ambiguous"], None),  # told by itself
        (["ambiguous"], ["ambiguous"], None),
        (["a", "b"], ["b", "a"], None),
        (["ambiguous"], [], "broke nothing, expected it to break ambiguous"),
        (["a"], ["a", "b"], "broke a, b, expected it to break a"),
    ],
)
def test_breaking(breaks: list[str], occurred: list[str], message: str | None) -> None:
    found = [failure.message for failure in court(breaks=breaks).broke(occurred)]
    assert found == ([f"A did take: {message}"] if message else [])
