"""Moves as a table, and as a picture beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from failure_matrix.evidence.records import Verdict, Witness
from failure_matrix.site.book import Book, Move, state_page, to_state, to_step
from failure_matrix.site.diagrams import Graph, overview
from failure_matrix.site.standing import of_move
from failure_matrix.site.tables import Table, TableRow
from failure_matrix.site.words import Cell, Code, Link, Part, Phrase, Quiet, Target, clip, count, join, line, prose, say

MOST_WITNESSES = 2


@dataclass(frozen=True, kw_only=True)
class SubjectMoves:
    """The moves of one subject, and their picture; ``undrawn`` says why there is none."""

    subject: str
    table: Table
    graph: Graph | None
    undrawn: str


@dataclass(frozen=True, kw_only=True)
class MovesView:
    summary: str
    subjects: tuple[SubjectMoves, ...]


def moves(book: Book) -> MovesView:
    proven = sum(1 for move in book.moves if move.verdict is Verdict.VERIFIED)
    return MovesView(
        summary=f"{count(len(book.moves), 'move')}, {proven:,} verified. An action or an event declares each.",
        subjects=tuple(_subject(book, id, found) for id, found in _by_subject(book).items()),
    )


def _by_subject(book: Book) -> dict[str, list[Move]]:
    """Moves by the subject whose states they join, in the author's order."""
    found: dict[str, list[Move]] = {id: [] for id in book.catalogue.subjects}
    for move in book.moves:
        state = book.catalogue.states.get(move.from_) or book.catalogue.states.get(move.to)
        found.setdefault(state.subject if state else "other", []).append(move)
    return {id: each for id, each in found.items() if each}


def _subject(book: Book, id: str, found: list[Move]) -> SubjectMoves:
    graph = overview(book, id) if id in book.states_of else None
    return SubjectMoves(
        subject=id,
        table=moves_table(book, found, f"Moves of {id}"),
        graph=graph,
        undrawn="" if graph else "They are too many for one picture; each state's page draws what is one move away.",
    )


def moves_table(book: Book, found: Iterable[Move], caption: str) -> Table:
    rows = tuple(
        TableRow(
            cells=(
                line(to_state(book, move.from_)),
                line(deed(book, move.from_, move.by)),
                line(to_state(book, move.to)),
                line(of_move(book, move).badge),
                (witnesses(book, move.witnesses), *_reason(book, move)),
            ),
            verdict=move.verdict,
        )
        for move in found
    )
    return Table(caption=caption, columns=("From", "By", "To", "Verdict", "Seen at"), rows=rows)


def _reason(book: Book, move: Move) -> Cell:
    """Why it is not proven, where the badge does not say it."""
    standing = of_move(book, move)
    said = standing.why.rstrip(".").lower() == standing.note.lower()
    return (say(Quiet(clip(standing.why, 200))),) if standing.why and not said else ()


def deed(book: Book, state: str, by: str) -> Part:
    """An action or event by its title; an action is explained on the page of the state it is taken in."""
    action = book.catalogue.actions.get(by)
    if action and action.instead_of:
        return f"{prose(action.title)} (the wrong way)"
    if action and by in book.actions_from.get(state, ()) and state in book.catalogue.states:
        return Link(prose(action.title), Target(state_page(state), f"{state}--{by}"))
    event = book.catalogue.events.get(by)
    return prose(action.title) if action else prose(event.title) if event else Code(by)


def witnesses(book: Book, found: tuple[Witness, ...], most: int = MOST_WITNESSES) -> Phrase:
    """Where it was seen, the first few linked."""
    if not found:
        return say(Quiet("nowhere"))
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return say(join((to_step(book, witness) for witness in found[:most]), "; "), Quiet(more) if more else "")


def cells(*parts: Part | Phrase | Cell) -> tuple[Cell, ...]:
    """Cells of one line each; a cell that is already one is kept."""
    return tuple(part if isinstance(part, tuple) else line(part) for part in parts)
