"""What a step will do once its names are bound: SQL and values, store effect, and the deed it stands for."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from failure_matrix.catalogue.model import Action, Catalogue, Event, Moves, Scalar, Sql, Step, StoreEffect, Subject
from failure_matrix.catalogue.sql import statement
from failure_matrix.database.answers import Value
from failure_matrix.verify.moves import Deed, Edge
from failure_matrix.verify.stores import Effect, bind
from failure_matrix.verify.values import Kept, NotKept, as_text, key_part, references, substitute

Path = tuple[str | int, ...]
ENDINGS = ("commit", "rollback")  # events that are there without being declared


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A step with every parameter bound. Without ``text`` it is an effect alone."""

    text: str | None
    values: tuple[Value, ...]
    parameters: Mapping[str, Scalar]
    effect: Effect | None
    deed: Deed | None


class Bindings:
    """Steps as they were bound. One that takes no kept value is bound alike whenever the clock says the same."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[tuple[Path, Value], Bound] = {}
        self._fixed: dict[Path, bool] = {}

    def bind(self, path: Path, step: Step, kept: Kept, *, now: Value, called_by: Kept) -> Bound:
        """Bind the step at ``path``, as ``bind_step`` does."""
        if path not in self._fixed:
            self._fixed[path] = self._is_fixed(step)
        if not self._fixed[path]:
            return bind_step(self._catalogue, step, kept, now=now, called_by=called_by)
        bound = self._known.get((path, now))
        if bound is None:
            bound = bind_step(self._catalogue, step, kept, now=now, called_by=called_by)
            self._known[path, now] = bound
        return bound

    def _is_fixed(self, step: Step) -> bool:
        event = self._catalogue.events.get(step.event) if step.event is not None else None
        noun = self._catalogue.actions[step.do] if step.do is not None else event
        values = (*step.with_.values(), *(noun.with_.values() if noun is not None else ()))
        stores = noun is not None and noun.store is not None
        return step.as_ is None and not stores and not any(map(references, values))


def bind_step(catalogue: Catalogue, step: Step, kept: Kept, *, now: Value, called_by: Kept) -> Bound:
    """Bind a ``do``, ``sql`` or ``event`` step. Raises NotKept, also for a parameter without source; EffectRefused."""
    own = {name: substitute(value, kept) for name, value in step.with_.items()}
    if step.do is not None:
        action = catalogue.actions[step.do]
        parameters = {**action.with_, **called_by, **own}
        return _bound(
            action.sql, action.store, parameters, kept, now, _action_deed(catalogue, step.do, parameters, step.as_)
        )
    if step.event in ENDINGS and step.sql is None:
        return Bound(text=step.event.upper(), values=(), parameters={}, effect=None, deed=None)
    event = catalogue.events.get(step.event) if step.event is not None else None
    if step.sql is not None:
        deed = _carried_out(catalogue, step, own)
        return _bound(step.sql, event.store if event else None, own, kept, now, deed)
    assert event is not None
    assert step.event is not None
    parameters = {**event.with_, **own}
    return _bound(event.sql, event.store, parameters, kept, now, event_deed(step.event, event, parameters))


def _bound(
    sql: Sql | None,
    store: StoreEffect | None,
    parameters: Mapping[str, Scalar],
    kept: Kept,
    now: Value,
    deed: Deed | None,
) -> Bound:
    effect = bind(store, {**kept, **parameters}) if store is not None else None
    if sql is None:
        return Bound(text=None, values=(), parameters=parameters, effect=effect, deed=deed)
    prepared = statement(sql)
    sources: dict[str, Value] = {"now": now, **parameters}
    if missing := [name for name in prepared.parameters if name not in sources]:
        message = f"':{missing[0]}' has no value: neither the step nor its caller nor the action gives one"
        raise NotKept(message, f"with: {{{missing[0]}: …}}")
    values = tuple(sources[name] for name in prepared.parameters)
    used = {name: sources[name] for name in prepared.parameters if name != "now"}
    shown = {name: value for name, value in parameters.items() if name in used or effect is not None}
    return Bound(text=prepared.text, values=values, parameters=shown, effect=effect, deed=deed)


def _carried_out(catalogue: Catalogue, step: Step, own: Mapping[str, Scalar]) -> Deed | None:
    if step.carries_out is not None:
        return _action_deed(catalogue, step.carries_out, own, None)
    if step.event is not None and step.event not in ENDINGS:  # how a transaction ends is seen by itself
        return event_deed(step.event, catalogue.events[step.event], own)
    return None


def _action_deed(catalogue: Catalogue, id: str, parameters: Mapping[str, Scalar], caller: str | None) -> Deed:
    """What an action may do: its moves, and those that it should not do and is known to."""
    action = catalogue.actions[id]
    subject = catalogue.subjects[action.subject]
    bound = _parameters_used(action) & parameters.keys()
    names = [_standing_for(subject, column, bound) for column in subject.key.values()]
    own = None
    if all(name is not None for name in names):
        own = tuple(key_part(parameters[name]) for name in names if name is not None)
    return Deed(
        name=id,
        edges=edges(action.moves, parameters).union(
            *(
                edges(each.moves, parameters)
                for each in action.hazards
                if caller in (None, each.caller) or not each.caller
            )
        ),
        others=edges(action.also, parameters),
        subject=action.subject,
        own=own,
    )


def _standing_for(subject: Subject, column: str, bound: Container[str]) -> str | None:
    """The parameter that gives a key column: its own, or an offer of the same column."""
    names = (name for name, of in (*subject.key.items(), *subject.offers.items()) if of == column)
    return next((name for name in names if name in bound), None)


def _parameters_used(action: Action) -> frozenset[str]:
    used = frozenset(statement(action.sql).parameters) if action.sql else frozenset()
    return used | (references(action.store.target) if action.store else frozenset())


def event_deed(id: str, event: Event, parameters: Mapping[str, Scalar]) -> Deed:
    """What an event may do: its moves, of any subject."""
    return Deed(name=id, edges=edges(event.moves, parameters))


def edges(moves: Moves, parameters: Mapping[str, Scalar]) -> frozenset[Edge]:
    """Moves as pairs of states; a ``$parameter`` that isn't bound leads nowhere."""
    found: set[Edge] = set()
    for source, targets in moves.items():
        for target in _bound_states(targets, parameters):
            found.add((source, target))
    return frozenset(found)


def _bound_states(targets: Iterable[str], parameters: Mapping[str, Scalar]) -> Iterable[str]:
    for target in targets:
        if references(target) <= parameters.keys():
            yield as_text(substitute(target, parameters)) or ""
