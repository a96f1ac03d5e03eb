"""An action on the page of a state in which it may be taken."""

from __future__ import annotations

from dataclasses import dataclass

from failure_matrix.catalogue.model import Action, Looks
from failure_matrix.site.book import Book, to_owner, to_state
from failure_matrix.site.standing import Standing
from failure_matrix.site.tables import Table, TableRow
from failure_matrix.site.views.permits import Permit, permits
from failure_matrix.site.views.trials import guards_table
from failure_matrix.site.words import Code, Part, Phrase, Strong, enumerated, line, prose, say, visible


@dataclass(frozen=True, kw_only=True)
class ActionView:
    """One permitted action: who, where to, the statement with its guards, and what a refusal looks like and means."""

    permit: Permit
    lead: str  # why it is not proven, "" when it is
    summary: Phrase
    about: str
    sql: str
    store: str
    requires: str
    refused: Phrase
    owner: Phrase
    guards: Table | None
    means: Table | None


def actions(book: Book, id: str, row: Standing) -> tuple[ActionView, ...]:
    return tuple(_action(book, id, permit) for permit in permits(book, id, row))


def _action(book: Book, state: str, permit: Permit) -> ActionView:
    action = book.catalogue.actions[permit.action]
    owner = to_owner(book, action.owner)
    store = action.store
    guards = [each for each in book.evidence.guards if each.action == permit.action and each.part != "assignment"]
    return ActionView(
        permit=permit,
        lead=permit.standing.lead,
        summary=say(f"By {permit.who} → ", permit.to, ".", *_hazards(action, state)),
        about=prose(action.about or ""),
        sql=visible(action.sql.text.strip()) if action.sql else "",
        store=f"{store.verb} {visible(store.target)}" if store else "",
        requires=visible(action.requires.text.strip()) if action.requires else "",
        refused=say("A refusal looks like: ", enumerated((_looks(each) for each in action.refusal.looks), "or"), "."),
        owner=say(owner, " answers for it.") if owner else say(),
        guards=guards_table(book, guards, permit.title),
        means=_means(book, action),
    )


def _hazards(action: Action, state: str) -> list[Part]:
    """What the statement lets through in this state and should not."""
    found: list[Part] = []
    for hazard in action.hazards:
        if state in hazard.moves:
            who = prose(hazard.caller) if hazard.caller else "anybody else"
            found += [" ", Strong(f"Permitted but unsafe by {who}:"), f" {prose(hazard.because).rstrip('.')}."]
    return found


def _looks(looks: Looks) -> str:
    found = []
    if looks.rows is not None:
        found.append("0 rows" if looks.rows == 0 else f"{looks.rows} rows")
    if looks.returns is not None:
        found.append("an answer of its own" if looks.returns else "an empty answer")
    if looks.error is not None:
        constraint = f" on {looks.error.constraint}" if looks.error.constraint else ""
        found.append(f"error {looks.error.sqlstate}{constraint}")
    if looks.silent:
        found.append("success, though nothing changed")
    return " with ".join(found) or "anything"


def _means(book: Book, action: Action) -> Table | None:
    """What a refusal means, by the state that is found afterwards."""
    rows = []
    for found, text in action.refusal.means.items():
        where = "any other" if found == "otherwise" else to_state(book, found)
        rows.append(TableRow(cells=(line(where), line(prose(text)))))
    columns = ("State found afterwards", "It means")
    return (
        Table(caption=f"What a refusal of {prose(action.title)} means", columns=columns, rows=tuple(rows))
        if rows
        else None
    )


def pitfalls(book: Book, id: str) -> tuple[Phrase, ...]:
    """The wrong ways that somebody might take here."""
    found = []
    for wrong in book.pitfalls_in.get(id, ()):
        action = book.catalogue.actions[wrong]
        right = book.catalogue.actions.get(action.instead_of or "")
        found.append(
            say(
                Strong(prose(action.title)),
                " instead of ",
                prose(right.title) if right else Code(action.instead_of or ""),
            )
        )
    return tuple(found)
