"""The shipped catalogue spoilt in one place at a time: the right thing turns red, with the right words."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.verify.proving import Proof, populated, swept

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Failure, Outcome, Verdict
from failure_matrix.verify import verify

SHIPPED = Path(__file__).parents[2] / "matrix"

Spoil = Callable[[str, str, str], Catalogue]


@pytest.fixture
def spoil(tmp_path: Path) -> Spoil:
    """A copy of the shipped catalogue in which one text, which must stand there once, is another."""

    def spoilt(file: str, old: str, new: str) -> Catalogue:
        copy = shutil.copytree(SHIPPED, tmp_path / "matrix")
        text = (copy / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{text.count(old)} times in {file}: {old}"
        (copy / file).write_text(text.replace(old, new), encoding="utf-8")
        return load(copy)

    return spoilt


def failures(proof: Proof, scenario: str) -> list[tuple[int, Failure]]:
    """What is wrong with a scenario, each with its step."""
    record = next(record for record in proof.evidence.scenarios if record.id == scenario)
    assert record.verdict is Verdict.BROKEN
    return [(step.number, failure) for step in record.steps for failure in step.failures]


def only(catalogue: Catalogue, server: Server, scenario: str) -> Proof:
    return Proof(verify(catalogue, server, only=(scenario,)))


def test_a_lease_that_ends_too_late(spoil: Spoil, server: Server) -> None:
    late = spoil(
        "actions.yaml", "state = 'running' AND lease_until <= :now", "state = 'running' AND lease_until < :now"
    )
    proof = only(late, server, "takeover-at-the-boundary")
    step, failure = failures(proof, "takeover-at-the-boundary")[0]
    assert (step, failure.message) == (2, "B did take-over: 0 rows, expected 1")
    assert failure.actions == ("take-over",)
    assert proof.state("expired").verdict is Verdict.BROKEN


def test_a_boundary_that_two_states_share(spoil: Spoil, server: Server) -> None:
    shared = spoil(
        "states/1-job.yaml", "when: job.state = 'running' AND job.lease_until <= :now", "when: job.state = 'running'"
    )
    proof = only(shared, server, "first-lease")
    step, failure = failures(proof, "first-lease")[0]
    assert (step, failure.kind) == (1, "ambiguous")
    assert "job 1 is in 2 states at once: leased, expired" in failure.message
    assert {proof.state("leased").verdict, proof.state("expired").verdict} == {Verdict.BROKEN}


def test_a_boundary_that_no_state_has(spoil: Spoil, server: Server) -> None:
    """No scenario need rest just there: the population does."""
    hole = spoil(
        "states/1-job.yaml",
        "when: job.state = 'running' AND job.lease_until <= :now",
        "when: job.state = 'running' AND job.lease_until < :now",
    )
    record = populated(hole, server, "job")
    assert record.verdict is Verdict.BROKEN
    assert record.offending is not None
    assert record.offending["job.state"] == "running"
    assert record.offending["job.lease_until"] == record.offending["$now"] == "10"
    assert (record.because or "").startswith("job with job.state running, job.epoch 1, job.owner A, job.lease_until 10")
    assert (record.because or "").endswith("is in no state")


def test_a_digest_left_out(spoil: Spoil, server: Server) -> None:
    loose = spoil("states/1-job.yaml", "candidate_name(job.id, job.epoch) AND artifact.sha256 = job.sha256\n",
                  "candidate_name(job.id, job.epoch)\n")  # fmt: skip
    record = populated(loose, server, "job")
    assert (record.verdict, record.states) == (Verdict.BROKEN, ("confirmed-publication", "unavailable-artifact"))
    assert (record.because or "").endswith("is in 2 states at once: confirmed-publication, unavailable-artifact")


def test_a_generation_left_out(spoil: Spoil, server: Server) -> None:
    loose = spoil(
        "states/1-job.yaml",
        "when: job.state = 'running' AND job.epoch > 1 AND job.lease_until > :now",
        "when: job.state = 'running' AND job.lease_until > :now",
    )
    proof = only(loose, server, "first-lease")
    _, failure = failures(proof, "first-lease")[0]
    assert "job 1 is in 2 states at once: leased, taken-over" in failure.message
    assert proof.state("taken-over").verdict is Verdict.BROKEN
    assert proof.state("expired").verdict is not Verdict.BROKEN


def test_the_move_of_an_event_left_out(spoil: Spoil, server: Server) -> None:
    silent = spoil("events.yaml", "      leased: expired\n      taken-over: expired\n", "      taken-over: expired\n")
    proof = only(silent, server, "takeover-at-the-boundary")
    step, failure = failures(proof, "takeover-at-the-boundary")[0]
    assert (step, failure.kind) == (1, "undeclared-move")
    assert "job 1 went leased -> expired" in failure.message
    assert failure.expected == "job 1 stays leased, or a declared move"
    assert {proof.state("leased").verdict, proof.state("expired").verdict} == {Verdict.BROKEN}


def test_the_counterexample_mended(spoil: Spoil, server: Server) -> None:
    mended = spoil(
        "actions.yaml",
        "sql: UPDATE job SET state = 'complete', candidate = :candidate, sha256 = :digest WHERE id = :id\n",
        "sql: UPDATE job SET state = 'complete', candidate = :candidate, sha256 = :digest"
        " WHERE id = :id AND candidate_name(id, epoch) = :candidate\n",
    )
    found = [failure for _, failure in failures(only(mended, server, "check-then-write"), "check-then-write")]
    assert {failure.actions for failure in found} == {("publish-unconditionally",)}
    messages = [failure.message for failure in found]
    assert any("broke nothing, expected it to break illegal-state" in message for message in messages)


def alone(catalogue: Catalogue, *scenarios: str) -> Catalogue:
    """The catalogue with these scenarios alone, so that a sweep takes no longer than it must."""
    return catalogue.model_copy(update={"scenarios": {id: catalogue.scenarios[id] for id in scenarios}})


def test_a_caller_permitted_that_must_not_be(spoil: Spoil, server: Server) -> None:
    generous = spoil(
        "actions.yaml", "title: Heartbeat\n    owner: export-worker\n    permits: [current]",
        "title: Heartbeat\n    owner: export-worker\n    permits: [current, intruder]",
    )  # fmt: skip
    proof = swept(alone(generous, "first-lease"), server, actions=("heartbeat",))
    cell = proof.cell("leased", "heartbeat", "intruder")
    assert (cell.expected, cell.observed, cell.verdict) == (Outcome.MOVED, Outcome.REFUSED, Verdict.BROKEN)
    assert cell.because == "it is permitted here, and was refused: 0 rows"
    assert proof.cell("leased", "heartbeat", "current").verdict is Verdict.VERIFIED
    assert (proof.state("leased").because or "").startswith("heartbeat as intruder: it is permitted here")


def test_a_caller_let_through_that_must_not_be(spoil: Spoil, server: Server) -> None:
    """Without the owner in its condition, a heartbeat takes anybody who knows the generation."""
    open_to_all = spoil(
        "actions.yaml",
        "SET lease_until = :now + :ttl\n       WHERE id = :id AND state = 'running' AND owner = :owner AND epoch",
        "SET lease_until = :now + :ttl\n       WHERE id = :id AND state = 'running' AND epoch",
    )
    proof = swept(alone(open_to_all, "first-lease", "current-heartbeat"), server, actions=("heartbeat",))
    cell = proof.cell("leased", "heartbeat", "intruder")
    assert (cell.observed, cell.verdict) == (Outcome.MOVED, Verdict.BROKEN)
    assert cell.because in ("it changed the row; it must be refused", "it was accepted; it must be refused")


def test_a_check_dropped_from_the_schema(spoil: Spoil, server: Server) -> None:
    unchecked = spoil(
        "schema.sql",
        "(state NOT IN ('running', 'complete') OR (owner IS NOT NULL AND epoch > 0 AND lease_until IS NOT NULL))",
        "(true)",
    )
    record = populated(unchecked, server, "job")
    assert record.verdict is Verdict.BROKEN
    assert (record.because or "").startswith("job with job.state running, job.epoch 0, ")
    assert (record.because or "").endswith(" is in no state")


def test_the_shipped_population_is_covered(server: Server) -> None:
    """The sabotages show nothing where the catalogue is not good before them."""
    record = populated(load(SHIPPED), server, "job")
    assert (record.verdict, record.because) == (Verdict.VERIFIED, None)
