"""Waivers: what is known not to hold, whose decision it is to live with that, and until when."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import date
from typing import assert_never

from failure_matrix.catalogue.model import Catalogue, Waiver
from failure_matrix.evidence.coverage import Item
from failure_matrix.evidence.records import (
    CellRecord,
    GuardRecord,
    InvariantRecord,
    MechanismRecord,
    MoveRecord,
    ObservationRecord,
    PopulationRecord,
    ScenarioRecord,
    StateRecord,
    Verdict,
    WaiverRecord,
    worst,
)
from failure_matrix.evidence.rollup import Judged, numbered


def name_of(record: Item) -> str:
    """What a record is called in a waiver."""
    match record:
        case ScenarioRecord():
            return f"scenario {record.id}"
        case MechanismRecord():
            return f"mechanism {record.id}"
        case StateRecord():
            return f"state {record.id}"
        case MoveRecord():
            return f"move {record.from_} {record.by} {record.to}"
        case CellRecord():
            return f"cell {record.state} {record.action}{f' {record.caller}' if record.caller else ''}"
        case GuardRecord():
            return f"guard {record.action} {record.guard}"
        case PopulationRecord():
            return f"population {record.subject}"
        case ObservationRecord():
            return f"{numbered(record)} {record.state}"
        case InvariantRecord():
            return f"invariant {record.id}"
        case _:
            assert_never(record)


class Waiving:
    """Applies the waivers of a catalogue to verdicts by name: ``state ready``, ``move ready acquire leased``.

    ``whole``: everything was run. Else what a waiver is about may not have been looked at, and that is no reason to
    call it unneeded or unknown.
    """

    def __init__(self, catalogue: Catalogue, today: date, *, whole: bool) -> None:
        self._waivers = catalogue.waivers
        self._today = today
        self._whole = whole
        self._verdicts: dict[str, Verdict | None] = {}  # name -> as it was judged without waivers; None: not tried

    def judge(self, name: str, verdict: Verdict, because: str | None) -> Judged:
        """The verdict on what is so named, waived where a waiver stands."""
        self._verdicts[name] = worst((verdict, self._verdicts.get(name) or verdict))  # two guards may be written alike
        for waiver in self._waivers.values():
            if waiver.of == name and verdict is not Verdict.VERIFIED and not self._expired(waiver):
                return Verdict.WAIVED, f"until {waiver.until}: {waiver.because}"
        return verdict, because

    def why_gone(self, name: str) -> str:
        """Why what was waived once is not any more."""
        ended = next((each.until for each in self._waivers.values() if each.of == name), None)
        return f"it was waived until {ended}" if ended else "it was waived, and the waiver is gone"

    def stands(self, name: str) -> bool:
        """Whether a waiver of it stands today."""
        return any(each.of == name and not self._expired(each) for each in self._waivers.values())

    def untried(self, name: str) -> None:
        """Take note of what has no verdict."""
        self._verdicts.setdefault(name, None)

    def _expired(self, waiver: Waiver) -> bool:
        return date.fromisoformat(waiver.until) < self._today

    def records(self) -> Iterator[WaiverRecord]:
        """Each waiver with its own verdict; to be called when everything has been judged."""
        for id, waiver in self._waivers.items():
            because = self._wrong(waiver)
            yield WaiverRecord(
                id=id,
                of=waiver.of,
                owner=waiver.owner,
                reason=waiver.because,
                until=waiver.until,
                verdict=Verdict.BROKEN if because else Verdict.WAIVED,
                because=because,
            )

    def _wrong(self, waiver: Waiver) -> str | None:
        """Why it may not stand."""
        if self._expired(waiver):
            return f"it ended on {waiver.until}: decide again"
        if not self._whole:
            return None
        if waiver.of not in self._verdicts:
            near = difflib.get_close_matches(waiver.of, self._verdicts, n=1)
            return f"nothing is called '{waiver.of}'" + (f": did you mean '{near[0]}'?" if near else "")
        match self._verdicts[waiver.of]:
            case Verdict.VERIFIED:
                return f"'{waiver.of}' holds now: delete the waiver"
            case None:
                return f"'{waiver.of}' was not tried, and that needs no waiver: delete it"
            case _:
                return None
