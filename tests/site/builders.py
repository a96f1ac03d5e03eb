"""A small catalogue, and evidence for it made by hand, in which each verdict occurs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Action, Catalogue, Event, Noun, Owner, Scenario, State, Subject, Waiver
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import Evidence, Verdict, worst

Verdicts = Mapping[str, tuple[str, str | None]]  # state -> verdict, because

MIXED: Verdicts = {
    "taken-over": ("stale", "schema job changed"),
    "cancelled": ("waived", "nobody has built it"),
    "confirmed-publication": ("incomplete", "12 of 20 orders ran"),
    "unavailable-artifact": ("broken", "republish by A moved it, and must be refused"),
    "orphan-candidate": ("unreached", "no scenario gets there"),
}
RUN: dict[str, Any] = {
    "started": "2026-11-28T21:04:00+00:00",
    "seconds": 4.1,
    "postgresql": "18.6",
    "server": "embedded",
    "host": "builder",
    "commit": "8d21f0c5aa",
    "version": "0.1.0",
}


@cache
def catalogue() -> Catalogue:
    return load(Path(__file__).parent / "export")


NOUNS: dict[str, type[Noun]] = {
    "owners": Owner,
    "subjects": Subject,
    "states": State,
    "actions": Action,
    "scenarios": Scenario,
    "waivers": Waiver,
}


def changed(**parts: Mapping[str, Mapping[str, Any]]) -> Catalogue:
    """The catalogue with some fields of its nouns replaced, ``states={"ready": {"title": …}}``, or nouns added."""
    made = catalogue()
    update: dict[str, dict[str, Noun]] = {}
    for part, nouns in parts.items():
        found = dict(getattr(made, part))
        for id, values in nouns.items():
            before = found[id].model_dump(mode="json", by_alias=True, exclude_unset=True) if id in found else {}
            found[id] = NOUNS[part].model_validate(before | dict(values))
        update[part] = found
    return made.model_copy(update=update)


def evidence(made: Catalogue | None = None, verdicts: Verdicts = MIXED, **parts: Any) -> Evidence:
    """Evidence in which states and what leaves them have these verdicts, all else is verified."""
    return Evidence.model_validate(plain(made or catalogue(), verdicts) | parts)


def all_verified(made: Catalogue | None = None) -> Evidence:
    return evidence(made, {}, scenarios=[acquire_once(), whole(takeover_publish())])


def plain(made: Catalogue, verdicts: Verdicts = MIXED) -> dict[str, Any]:
    """The evidence as plain data."""
    chosen = {id: verdicts.get(id, ("verified", None)) for id in made.states}
    return {
        "catalogue": {"title": made.settings.title, "fingerprint": "3f9a1c2e77b04d15"},
        "postgresql": {"major": 18},
        "verdict": str(worst(Verdict(verdict) for verdict, _ in chosen.values())),
        "scenarios": [acquire_once(), takeover_publish()],
        "states": [_state(made, id, *chosen[id]) for id in made.states],
        "moves": list(_moves(made, chosen)),
        "invariants": [{"id": id, "verdict": "verified", "checked": 11} for id in made.invariants],
        "digests": Fingerprints(made, 18).digests(["schema/job", *(f"state/{id}" for id in made.states)]),
        "run": RUN,
    }


def _state(made: Catalogue, id: str, verdict: str, because: str | None) -> dict[str, Any]:
    found = [{"scenario": "takeover-publish", "step": 6}, {"scenario": "acquire-once", "step": 0}]
    return {
        "id": id,
        "subject": made.states[id].subject,
        "verdict": verdict,
        "because": because,
        "fingerprint": f"71be{list(made.states).index(id):012x}",
        "witnesses": [] if verdict == "unreached" else found,
        "rests_on": [f"state/{id}", "schema/job"],
    }


def _moves(made: Catalogue, chosen: Verdicts) -> Iterator[dict[str, Any]]:
    deeds: list[tuple[str, Action | Event]] = [*made.actions.items(), *made.events.items()]
    for by, deed in deeds:
        for from_, targets in deed.moves.items():
            verdict, because = chosen.get(from_, ("verified", None))
            found = [] if verdict == "unreached" else [{"scenario": "takeover-publish", "step": 1}]
            for to in targets:
                yield {"from": from_, "by": by, "to": to, "verdict": verdict, "because": because, "witnesses": found}


def seen(state: str) -> list[dict[str, Any]]:
    return [{"subject": "job", "key": ["1"], "state": state}]


def step(number: int, session: str | None, verb: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    text = more.pop("text", "UPDATE job SET …")
    return {"number": number, "in": session, "verb": verb, "name": name, "text": text, "at": "10", **more}


def move(from_: str, to: str, by: str) -> dict[str, Any]:
    """What a step shows when job 1 goes from one state to another."""
    change = {"subject": "job", "key": ["1"], "from": from_, "to": to, "by": [by]}
    return {"then": seen(to), "moves": [change]}


def acquire_once() -> dict[str, Any]:
    first = step(1, "A", "do", "acquire", rows=1, at="0", **{"with": {"id": "1", "owner": "A"}})
    second = step(2, "B", "do", "acquire", rows=0, at="0", then=seen("leased"), **{"with": {"id": "1", "owner": "B"}})
    return {
        "id": "acquire-once",
        "title": "A job is acquired once",
        "verdict": "verified",
        "fingerprint": "aa",
        "given": seen("ready"),
        "steps": [first | move("ready", "leased", "acquire"), second],
    }


def takeover_publish() -> dict[str, Any]:
    """Eight steps that go well, among them a wait, and a ninth that is broken."""
    failure = {
        "kind": "rows",
        "message": "A did republish",
        "expected": "0 rows",
        "observed": "1 row",
        "place": "matrix/job.yaml:112",
        "states": ["unavailable-artifact"],
    }
    begun = {"at": "0", "with": {"id": "1", "owner": "A"}}
    taken = {"in_transaction": True, "then": seen("expired"), "seen_by": {"B": seen("taken-over")}}
    steps = [
        step(1, "A", "do", "acquire", rows=1, **begun) | move("ready", "leased", "acquire"),
        step(2, None, "at", text="10") | move("leased", "expired", "lease-expires"),
        step(3, "B", "sql", text="BEGIN", in_transaction=True, then=seen("expired")),
        step(4, "B", "do", "take-over", rows=1, **taken),
        step(5, "A", "do", "publish", rows=0, waits=["B"], released_by=6, then=seen("expired")),
        step(6, "B", "sql", text="COMMIT", releases=[5]) | move("expired", "taken-over", "take-over"),
        step(7, "B", "do", "publish", rows=1) | move("taken-over", "confirmed-publication", "publish"),
        step(8, None, "event", "artifact-lost", text="remove candidate/1-2.csv")
        | move("confirmed-publication", "unavailable-artifact", "artifact-lost"),
        step(9, "A", "do", "republish", rows=1, verdict="broken", failures=[failure])
        | move("unavailable-artifact", "confirmed-publication", "republish"),
    ]
    return {
        "id": "takeover-publish",
        "title": "A late worker cannot publish over its successor",
        "verdict": "broken",
        "because": "step 9: expected 0 rows, got 1",
        "orders": {"exist": 20, "ran": 12, "skipped": 8},
        "fingerprint": "bb",
        "given": seen("ready"),
        "steps": steps,
        "not_run": [10, 11],
    }


def whole(scenario: dict[str, Any]) -> dict[str, Any]:
    """The same scenario as it would be had its ninth step gone well."""
    orders = {"exist": 20, "ran": 20}
    return scenario | {
        "verdict": "verified",
        "because": None,
        "orders": orders,
        "steps": scenario["steps"][:8],
        "not_run": [],
    }


def cell(state: str, caller: str, observed: str, verdict: str | None = "verified", **more: Any) -> dict[str, Any]:
    expected = more.pop("expected", "refused")
    witness = [{"scenario": "takeover-publish", "step": 6}]
    return {
        "state": state, "action": "publish", "caller": caller, "expected": expected, "observed": observed,
        "verdict": verdict, "witnesses": witness, **more,
    }  # fmt: skip


CELLS = [
    cell("taken-over", "current", "moved", expected="moved", to=["confirmed-publication"]),
    cell("taken-over", "former", "refused"),
    cell("taken-over", "namesake", "refused"),
    cell("leased", "current", "permitted but unsafe", expected="permitted but unsafe", to=["cancelled"]),
    cell("leased", "former", "no such caller"),
    cell("leased", "namesake", "moved", "broken", to=["confirmed-publication"], because="it must be refused"),
    cell("uncommitted-materialization", "current", "not tried", None, because="open transaction"),
    cell("absent", "current", "refused"),
]
GUARDS: list[dict[str, Any]] = [
    {
        "action": "publish", "guard": "epoch = :epoch", "part": "condition", "outcome": "noticed",
        "verdict": "verified", "noticed_by": ["scenario takeover-publish, step 9: 1 row, expected 0"],
    },
    {"action": "publish", "guard": "owner = :owner", "part": "condition", "outcome": "missed", "verdict": "broken"},
    {"action": "publish", "guard": "sha256 = :digest", "part": "assignment", "outcome": "missed", "verdict": None},
]  # fmt: skip
POPULATION: list[dict[str, Any]] = [
    {
        "subject": "job", "combinations": 12, "admitted": 8, "hits": {"ready": 3, "leased": 0}, "verdict": "broken",
        "because": "unclassified: job.epoch 0", "offending": {"job.epoch": "0", "job.owner": None},
    }
]  # fmt: skip


def tried() -> Evidence:
    """Evidence in which each verdict occurs, with cells, guards and a population probe."""
    return evidence(cells=CELLS, guards=GUARDS, population=POPULATION)
