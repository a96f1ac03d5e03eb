"""How much of each kind is verified; and the verdict on the whole."""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.evidence.records import (
    CellRecord,
    Count,
    Evidence,
    GuardRecord,
    InvariantRecord,
    MechanismRecord,
    MoveRecord,
    ObservationRecord,
    PopulationRecord,
    ScenarioRecord,
    StateRecord,
    Verdict,
    worst,
)

Item = (
    ScenarioRecord | StateRecord | MoveRecord | CellRecord | GuardRecord | PopulationRecord | ObservationRecord
    | InvariantRecord | MechanismRecord
)  # fmt: skip


def kinds(evidence: Evidence) -> dict[str, Sequence[Item]]:
    """Everything that has a verdict, by the word for its kind; assignments are no guards."""
    return {
        "scenarios": evidence.scenarios,
        "mechanisms": evidence.mechanisms,
        "states": evidence.states,
        "moves": evidence.moves,
        "cells": evidence.cells,
        "guards": [guard for guard in evidence.guards if guard.part != "assignment"],
        "population": evidence.population,
        "observations": evidence.observations,
        "invariants": evidence.invariants,
    }


def counted(evidence: Evidence) -> Evidence:
    """The evidence with its coverage counted and its verdict rolled up: the worst of everything that was judged.

    A waiver that stands is as good as what it waives; one that may not stand is broken.
    """
    items = kinds(evidence)
    verdicts = [item.verdict for of_kind in items.values() for item in of_kind if item.verdict is not None]
    verdicts += [waiver.verdict for waiver in evidence.waivers if waiver.verdict is Verdict.BROKEN]
    return evidence.model_copy(
        update={
            "coverage": {kind: _count(of_kind) for kind, of_kind in items.items()},
            "verdict": worst(verdicts, default=Verdict.UNREACHED),
        }
    )


def below(evidence: Evidence, percent: int) -> dict[str, Count]:
    """The kinds of which less than so much is verified or waived, as ``catalogue.require`` asks for it."""
    return {
        kind: count
        for kind, count in evidence.coverage.items()
        if (count.verified + count.waived) * 100 < percent * count.of
    }


def _count(items: Sequence[Item]) -> Count:
    tried = [item for item in items if item.verdict is not None]
    return Count(
        of=len(tried),
        verified=sum(item.verdict is Verdict.VERIFIED for item in tried),
        waived=sum(item.verdict is Verdict.WAIVED for item in tried),
        not_tried=len(items) - len(tried),
    )
