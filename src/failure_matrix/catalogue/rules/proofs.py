"""Rules about what the sweep tries and what a waiver is about."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import ABSENT, Action
from failure_matrix.catalogue.rulebook import nearest
from failure_matrix.catalogue.rules.look import NOW, Look
from failure_matrix.catalogue.rules.parameters import columns_of, references
from failure_matrix.catalogue.sql import parameters


def sources_of_sweep(look: Look) -> Iterator[Finding]:
    """Find parameters of an action that nobody gives when the sweep tries it."""
    for name, action in look.catalogue.actions.items():
        subject = look.catalogue.subjects.get(action.subject)
        if action.instead_of is not None or subject is None:
            continue
        columns = [columns_of(caller) for caller in look.catalogue.callers.values()]
        if None in columns:
            continue  # a caller that may give anything
        given = {NOW, *subject.key, *subject.offers, *action.with_, *(one for each in columns for one in each or ())}
        for parameter in sorted(_needed(action) - given):
            message = f"action '{name}' needs ':{parameter}', which no key, offer, caller or 'with' gives"
            hint = f"give it a usual value: with: {{{parameter}: …}}; without one its cells say 'cannot call'"
            yield look.found("sweep-source", ("actions", name), message, hint)


def _needed(action: Action) -> set[str]:
    names = {name for sql in (action.sql, action.requires) if sql is not None for name in parameters(sql)}
    if action.store is not None:
        names |= {name for text in (action.store.target, action.store.content) for name in references(text)}
    return names


def unfenced_actions(look: Look) -> Iterator[Finding]:
    """Find actions that permit some callers only, and ask for nothing that tells these from others."""
    for name, action in look.catalogue.actions.items():
        subject = look.catalogue.subjects.get(action.subject)
        if action.permits is None or action.instead_of is not None or subject is None:
            continue
        columns = [columns_of(look.catalogue.callers.get(caller)) for caller in action.permits]
        if None in columns:
            continue
        telling = {one for each in columns for one in each or ()} - {*subject.key, *subject.offers}
        if telling & _needed(action):
            continue
        others = [caller for caller in look.catalogue.callers if caller not in action.permits]
        warned = {hazard.caller for hazard in action.hazards}
        bare = [caller for caller in others if caller not in warned and None not in warned]
        if bare:
            permitted, too = ", ".join(action.permits), ", ".join(bare)
            message = f"action '{name}' permits {permitted}, and its SQL lets {too} do it too"
            hint = "ask for a column of the caller in its WHERE, or declare a hazard for each of the others"
            yield look.found("unfenced", ("actions", name, "permits"), message, hint)


def sources_of_callers(look: Look) -> Iterator[Finding]:
    """Find callers that bring what SQL gives, and constants beside it."""
    for name, caller in look.catalogue.callers.items():
        if caller.sql is not None and caller.gives:
            message = f"caller '{name}' has sql and gives, and only one of the two binds its parameters"
            yield look.found("caller-source", ("callers", name, "gives"), message, "take one of the two out")


def waived_things(look: Look) -> Iterator[Finding]:
    """Find waivers of what does not exist."""
    for name, waiver in look.catalogue.waivers.items():
        kind, *words = waiver.of.split()
        known = _WAIVED.get(kind)
        if known is None:
            hint = nearest(kind, tuple(_WAIVED), f"begin with one of {', '.join(_WAIVED)}")
            yield look.found("unknown-waived", ("waivers", name, "of"), f"waiver '{name}' is of a '{kind}'", hint)
            continue
        for section, word in zip(known, words, strict=False):
            ids = [id for each in section for id in look.known(each)] + ([ABSENT] if "states" in section else [])
            if section and word not in ids:
                message = f"waiver '{name}' is of '{waiver.of}', and there is no {section[0].rstrip('s')} '{word}'"
                yield look.found("unknown-waived", ("waivers", name, "of"), message, nearest(word, ids))


_WAIVED: dict[str, tuple[tuple[str, ...], ...]] = {  # kind -> where each word after it is an id; () is anything
    "scenario": (("scenarios",),),
    "mechanism": (("mechanisms",),),
    "state": (("states",),),
    "move": (("states",), ("actions", "events"), ("states",)),
    "cell": (("states",), ("actions",), ("callers",)),
    "guard": (("actions",),),
    "population": (("subjects",),),
    "observation": ((), ("states",)),
    "cost": (("states",),),
    "invariant": (("invariants",),),
}
