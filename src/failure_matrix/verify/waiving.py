"""Waivers: what is known not to hold, whose decision it is to live with that, and until when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from failure_matrix.catalogue.model import Catalogue, Waiver
from failure_matrix.evidence.records import Verdict, WaiverRecord

Judged = tuple[Verdict, str | None]


class Waiving:
    """Applies the waivers of a catalogue to verdicts by name: ``state ready``, ``move ready acquire leased``."""

    def __init__(self, catalogue: Catalogue, today: date) -> None:
        self._waivers = catalogue.waivers
        self._today = today
        self._needed: dict[str, bool] = {}  # id -> whether what it waives does not hold

    def judge(self, name: str, verdict: Verdict, because: str | None) -> Judged:
        """The verdict on what is so named, waived where a waiver stands."""
        for id, waiver in self._waivers.items():
            if waiver.of != name:
                continue
            self._needed[id] = verdict is not Verdict.VERIFIED
            if self._needed[id] and not self._expired(waiver):
                return Verdict.WAIVED, f"until {waiver.until}: {waiver.because}"
        return verdict, because

    def _expired(self, waiver: Waiver) -> bool:
        return date.fromisoformat(waiver.until) < self._today

    def records(self) -> Iterator[WaiverRecord]:
        """Each waiver with its own verdict; to be called when everything has been judged."""
        for id, waiver in self._waivers.items():
            because = None
            if self._expired(waiver):
                because = f"it ended on {waiver.until}: decide again"
            elif id not in self._needed:
                because = f"nothing is called '{waiver.of}'"
            elif not self._needed[id]:
                because = f"'{waiver.of}' holds now: delete the waiver"
            yield WaiverRecord(
                id=id,
                of=waiver.of,
                owner=waiver.owner,
                reason=waiver.because,
                until=waiver.until,
                verdict=Verdict.BROKEN if because else Verdict.WAIVED,
                because=because,
            )
