"""Why something is not verified, in words: decided here once, for every page and both formats.

Permission weakens, prohibition does not: what a row permits is led by these words, what it forbids never is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from failure_matrix.evidence.records import Orders, StateRecord, Verdict
from failure_matrix.site.book import Book, Move
from failure_matrix.site.words import Badge, Phrase, clip, prose, say

NEVER = "never demonstrated"
PARTLY = "not all of it was shown"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How well something is proven.

    note: beside the badge, 40 characters. lead: before what is permitted, "" when verified.
    why: one sentence for the top of its page, "" when verified.
    """

    verdict: Verdict
    note: str
    lead: str
    why: str

    @property
    def verified(self) -> bool:
        return self.verdict is Verdict.VERIFIED

    @property
    def broken(self) -> bool:
        return self.verdict is Verdict.BROKEN

    @property
    def badge(self) -> Phrase:
        return say(Badge(self.verdict, self.note))

    @property
    def brief(self) -> str:
        """The lead in 27 characters, for a cell of the Markdown matrix."""
        match self.verdict:
            case Verdict.VERIFIED:
                return ""
            case Verdict.INCOMPLETE:
                return clip(f"{self.note} only", 27)
            case Verdict.WAIVED:
                return clip(f"waived {self.note}", 27)
            case _:
                return clip(self.note, 27)


DO_NOT_ACT = "Do not act on this row."

MEANINGS: dict[Verdict, str] = {
    Verdict.VERIFIED: "It was shown on a live PostgreSQL, in every order that was asked for.",
    Verdict.WAIVED: "It is not proven. Somebody accepted that, by name and until a date.",
    Verdict.UNREACHED: "It is declared. No scenario has shown it.",
    Verdict.STALE: "It was shown once; what that rests on has changed since.",
    Verdict.INCOMPLETE: "Some of what would prove it was not run.",
    Verdict.BROKEN: "What was seen contradicts what is declared. One of the two is wrong.",
}

CONSEQUENCES: dict[Verdict, str] = {
    Verdict.VERIFIED: "Act on the row as it is written.",
    Verdict.WAIVED: "Read what is permitted as the author's claim, and ask whoever signed the waiver.",
    Verdict.UNREACHED: "Read what is permitted as the author's claim, and look twice before you act.",
    Verdict.STALE: "Read what is permitted as a claim about an older version, until it is verified again.",
    Verdict.INCOMPLETE: "Read what is permitted as shown in part, and look at what is missing.",
    Verdict.BROKEN: "Do not act on it. Call the owner. What is forbidden stays forbidden.",
}


def of_state(book: Book, id: str) -> Standing:
    """The standing of a row of the matrix."""
    record = book.state(id)
    because = prose(record.because or "")
    match record.verdict:
        case Verdict.VERIFIED:
            return Standing(verdict=record.verdict, note="", lead="", why="")
        case Verdict.WAIVED:
            return _waived(book, f"state {id}", because)
        case Verdict.UNREACHED:
            what = PARTLY if record.witnesses else NEVER
            return Standing(
                verdict=record.verdict,
                note=what,
                lead=f"Declared; {what}:",
                why=_sentences(what, because),
            )
        case Verdict.STALE:
            older = _older(because)
            return Standing(
                verdict=record.verdict,
                note=f"proven on an older {older}",
                lead=f"Declared; proven on an older {older}:",
                why=_sentences(f"Last proven on an older {older}; read what follows as the author's claim", because),
            )
        case Verdict.INCOMPLETE:
            return _incomplete(book, record, because)
        case Verdict.BROKEN:
            return Standing(
                verdict=record.verdict,
                note=clip(because, 40),
                lead=DO_NOT_ACT,
                why=_sentences("Do not act on this row: what was seen contradicts it", because),
            )
        case _:
            assert_never(record.verdict)


def of_item(book: Book, of: str, verdict: Verdict, because: str | None) -> Standing:
    """The standing of anything that is not a row; ``of`` is its name in a waiver."""
    text = prose(because or "")
    if verdict is Verdict.WAIVED:
        return _waived(book, of, text)
    words = {Verdict.VERIFIED: "", Verdict.UNREACHED: NEVER, Verdict.STALE: "proven on an older version"}
    default = words.get(verdict, "")
    note = text if verdict is not Verdict.UNREACHED and text else default
    if verdict is Verdict.VERIFIED:
        return Standing(verdict=verdict, note="", lead="", why="")
    lead = f"Do not: {note}." if verdict is Verdict.BROKEN else f"{verdict.capitalize()}: {note}."
    why = _sentences(note or str(verdict), text if text != note else "")
    return Standing(verdict=verdict, note=clip(note, 60), lead=lead, why=why)


def of_moves(book: Book, moves: Iterable[Move]) -> Standing:
    """The standing of an action in one state: its worst move."""
    found = max(moves, key=lambda move: move.verdict.badness, default=None)
    if found is None:
        return Standing(verdict=Verdict.UNREACHED, note=NEVER, lead=NEVER, why="")
    return of_move(book, found)


def of_move(book: Book, move: Move) -> Standing:
    return of_item(book, f"move {move.from_} {move.by} {move.to}", move.verdict, move.because)


def partly(orders: Orders) -> str:
    """'12 of 20 orders' where some that exist were left out, else ''."""
    return f"{orders.ran:,} of {orders.exist - orders.impossible:,} orders" if orders.skipped else ""


_UNTIL = re.compile(r"until (\d{4}-\d\d-\d\d)(?:: )?")  # as the evidence begins the reason of a waiver


def _waived(book: Book, of: str, because: str) -> Standing:
    waiver = book.waivers.get(of)
    said = _UNTIL.match(because)
    until = waiver.until if waiver else said[1] if said else ""
    reason = prose(waiver.because) if waiver else because[said.end() :] if said else because
    waived = f"waived until {until}" if until else "waived"
    return Standing(
        verdict=Verdict.WAIVED,
        note=f"until {until}" if until else clip(reason, 40),
        lead=f"{waived.capitalize()}, not proven:",
        why=_sentences(f"Not proven; {waived}", reason),
    )


_PART = re.compile(r"\b[\d,]+ of [\d,]+\b( \w+)?")


def _incomplete(book: Book, record: StateRecord, because: str) -> Standing:
    if not record.witnesses:
        why = _sentences("Not shown", because)
        return Standing(verdict=record.verdict, note="not shown", lead="Declared; not shown:", why=why)
    part = _PART.search(because)
    if part:
        shown = part.group()
    else:
        scenarios = (book.scenario(witness.scenario) for witness in record.witnesses)
        shown = next((found for scenario in scenarios if scenario and (found := partly(scenario.orders))), "")
    lead = f"Proven in {shown} only:" if shown else "Proven in part only:"
    why = _sentences(lead.rstrip(":"), "" if shown and shown in because and len(because) < len(shown) + 8 else because)
    return Standing(verdict=record.verdict, note=shown or clip(because, 40) or "in part", lead=lead, why=why)


_CHANGED = re.compile(r"changed since: (.+)")


def _older(because: str) -> str:
    """Say what is older: the schema where only relations changed, else the catalogue as a whole."""
    said = _CHANGED.search(because)
    kinds = {name.split(" ", 1)[0] for name in said[1].split(", ")} if said else set()
    return "schema" if kinds == {"schema"} else "PostgreSQL" if kinds == {"postgresql"} else "catalogue"


def _sentences(*texts: str) -> str:
    """Each text as a sentence; what says nothing is left out."""
    found = (text[:1].upper() + text[1:] for text in texts if text)
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in found)
