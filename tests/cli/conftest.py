"""Evidence in every verdict, made by hand, for what renders it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from failure_matrix.database import cluster
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import (
    CatalogueRecord,
    Count,
    Evidence,
    Failure,
    InvariantRecord,
    MoveRecord,
    PostgreSQL,
    Run,
    ScenarioRecord,
    StateRecord,
    StepRecord,
    Verdict,
)

RUN = Run(
    started="2026-01-02T03:04:05Z",
    seconds=4.12,
    postgresql="18.6",
    server="embedded",
    host="here",
    commit=None,
    version="0.1.0",
)


def evidence(verdict: Verdict = Verdict.VERIFIED, **parts: object) -> Evidence:
    return Evidence.model_validate(
        {
            "catalogue": CatalogueRecord(title="A queue", fingerprint="c0"),
            "postgresql": PostgreSQL(major=18),
            "verdict": verdict,
            "run": RUN,
            **parts,
        }
    )


@pytest.fixture(scope="session")  # frozen, so one is enough
def verified() -> Evidence:
    return evidence(
        scenarios=(ScenarioRecord(id="finish-once", title="Once", verdict=Verdict.VERIFIED, fingerprint="f1"),),
        states=(StateRecord(id="ready", subject="job", verdict=Verdict.VERIFIED, fingerprint="s1"),),
        coverage={"scenarios": Count(of=1, verified=1), "states": Count(of=1, verified=1)},
    )


@pytest.fixture(scope="session")  # frozen, so one is enough
def broken() -> Evidence:
    """One item in each verdict; two failures in the broken scenario."""
    failure = Failure(
        kind="rows",
        message="A did publish: 1 row, expected 0",
        expected="0 rows",
        observed="1 row",
        place="matrix/scenarios.yaml:88",
    )
    undeclared = Failure(
        kind="undeclared-move",
        message="A did publish: undeclared: job 1 went taken-over -> confirmed-publication; "
        "publish declares no such move",
        expected="job 1 stays taken-over",
        observed="job 1 is confirmed-publication, published by epoch 1",
        place="matrix/scenarios.yaml:88",
    )
    step = StepRecord.model_validate(
        {
            "number": 6,
            "in": "A",
            "verb": "do",
            "name": "publish",
            "text": "UPDATE job",
            "failures": (failure, undeclared),
            "verdict": "broken",
        }
    )
    return evidence(
        Verdict.BROKEN,
        scenarios=(
            ScenarioRecord(id="finish-once", title="Once", verdict=Verdict.VERIFIED, fingerprint="f1"),
            ScenarioRecord(
                id="stale-publication",
                title="A stale worker publishes",
                verdict=Verdict.BROKEN,
                because="step 6 broke",
                fingerprint="f2",
                steps=(step,),
                not_run=(7,),
                place="matrix/scenarios.yaml:70",
            ),
        ),
        states=(
            StateRecord(id="ready", subject="job", verdict=Verdict.VERIFIED, fingerprint="s1"),
            StateRecord(
                id="orphan-candidate",
                subject="job",
                verdict=Verdict.UNREACHED,
                because="no scenario gets there",
                fingerprint="s2",
            ),
            StateRecord(
                id="expired", subject="job", verdict=Verdict.STALE, because="the schema has changed", fingerprint="s3"
            ),
            StateRecord(
                id="cancelled", subject="job", verdict=Verdict.WAIVED, because="until 2027-01-31", fingerprint="s4"
            ),
        ),
        moves=(
            MoveRecord.model_validate(
                {
                    "from": "ready",
                    "by": "acquire",
                    "to": "leased",
                    "verdict": "incomplete",
                    "because": "12 of 20 orders",
                }
            ),
        ),
        invariants=(InvariantRecord(id="epoch-never-falls", verdict=Verdict.VERIFIED, checked=9),),
        coverage={
            "scenarios": Count(of=2, verified=1),
            "states": Count(of=4, verified=1),
            "moves": Count(of=1, verified=0),
            "invariants": Count(of=1, verified=1),
        },
    )


@pytest.fixture(autouse=True)
def _no_options_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MATRIX_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, so that no command writes into the project."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> Path:
    """That directory, and commands that use the tests' server instead of starting one each."""

    def serve(_: cluster.Source, *, meanwhile: Callable[[], object]) -> AbstractContextManager[Server]:
        meanwhile()
        return nullcontext(server)

    monkeypatch.setattr(cluster, "serve", serve)
    return tmp_path
