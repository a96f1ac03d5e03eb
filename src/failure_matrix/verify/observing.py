"""Observations with SQL, run wherever a scenario begins in or enters their state: each must give a row there.

One that names the row it looks at is run in the other states of its subject too, and must give none there, unless
it says so. Retention costs are run in their own states: each must give one row, a number and its unit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from failure_matrix.catalogue.model import Catalogue, Sql
from failure_matrix.catalogue.sql import parameters
from failure_matrix.database.answers import Request, Result, ServerError, Value
from failure_matrix.database.classify import KeyText
from failure_matrix.database.relations import store_values
from failure_matrix.evidence.declared import COST
from failure_matrix.evidence.declared import observations as observations_of
from failure_matrix.evidence.records import ObservationRecord, Verdict, Witness
from failure_matrix.verify.entry import Entry
from failure_matrix.verify.hiding import Secrets
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import LOCK_NOT_AVAILABLE
from failure_matrix.verify.rows import bound, rows_of, with_stores
from failure_matrix.verify.world import World

_READ_ONLY, _ROLLBACK = Request(text="BEGIN READ ONLY"), Request(text="ROLLBACK")


@dataclass(kw_only=True)
class Tally:
    """How often one observation was run, and what was wrong the first time that it was."""

    runs: int = 0
    wrong: str | None = None
    elsewhere: dict[str, int] = field(default_factory=dict)  # runs in each other state
    also_in: dict[str, str] = field(default_factory=dict)  # those in which it gave a row, and where it first did


class Observing:
    """Runs the observations of the states that one scenario begins with and that its steps enter.

    ``elsewhere``: those of the other states too.
    """

    def __init__(self, catalogue: Catalogue, *, elsewhere: bool = True) -> None:
        self._catalogue = catalogue
        self.elsewhere = elsewhere
        self.tallies: dict[tuple[str, int], Tally] = {}

    def begin(self, world: World, standing: Standing, witness: Witness) -> None:
        """Run the observations of every state that is there before the first step."""
        self._run_all(world, ((*where, state) for where, state in standing.items() if isinstance(state, str)), witness)

    def visit(self, world: World, entry: Entry, witness: Witness) -> None:
        """Run the observations of every state that this step entered."""
        entered = {
            (change.subject, change.key, change.to)
            for change in entry.changes
            if change.from_ != change.to and change.to in self._catalogue.states
        }
        if entry.breaks and entry.standing is not None:
            illegal = ((where, state) for where, state in entry.standing.items() if isinstance(state, str))
            entered |= {(*where, state) for where, state in illegal if self._catalogue.states[state].illegal}
        self._run_all(world, entered, witness)

    def _run_all(self, world: World, entered: Iterable[tuple[str, KeyText, str]], witness: Witness) -> None:
        """Run what each state is known by, and what the other states of its subject are, in one round trip."""
        for subject, key, state in sorted(entered):
            own = {(state, number): sql for number, sql in observations_of(self._catalogue, state)}
            others = self._others(subject, state)
            answers = self._ask(world, subject, key, [*own.values(), *others.values()])
            for named, found in zip((*own, *others), answers, strict=True):
                tally = self.tallies.setdefault(named, Tally())
                if named in own:
                    self._count(world, tally, named[1], found, witness)
                elif isinstance(found, Result):  # an error says nothing here, its own state tells it
                    tally.elsewhere[state] = tally.elsewhere.get(state, 0) + 1
                    if found.rows:
                        tally.also_in[state] = _at(witness)

    def _count(self, world: World, tally: Tally, number: int, found: Result | ServerError, witness: Witness) -> None:
        """Count one run in the observation's own state."""
        wrong = self._wrong(world, number, found)
        if wrong is None:
            return
        tally.runs += 1
        if wrong and tally.wrong is None:
            tally.wrong = f"{wrong}, at {_at(witness)}"

    def _others(self, subject: str, state: str) -> dict[tuple[str, int], Sql]:
        """What the other states are known by, unless it is known already that it gives a row in this one too."""
        if self._catalogue.states[state].uncommitted or not self.elsewhere:
            return {}
        return {
            named: sql
            for named, sql in self._telling(subject)
            if named[0] != state and (named not in self.tallies or state not in self.tallies[named].also_in)
        }

    def _telling(self, subject: str) -> Iterator[tuple[tuple[str, int], Sql]]:
        """The observations that name the row they look at, of every state of a subject."""
        for state in self._catalogue.states_of(subject):
            for number, sql in observations_of(self._catalogue, state):
                if _names_row(self._catalogue, state, number, sql):
                    yield (state, number), sql

    def _wrong(self, world: World, number: int, found: Result | ServerError) -> str | None:
        """What is wrong with what it gives, in words, or nothing; None where it could not look."""
        if isinstance(found, ServerError):
            return None if found.sqlstate == LOCK_NOT_AVAILABLE else self._told(world, str(found))
        if number == COST:
            return "" if _is_cost(found) else "it gives not one row of a number and its unit"
        return "" if found.rows else "it gives no row"

    def _ask(self, world: World, subject: str, key: KeyText, asked: Collection[Sql]) -> Sequence[Result | ServerError]:
        """What each gives, in a transaction that may not write, as live commands do it."""
        if not asked:
            return ()
        try:
            sources = self._sources(world, subject, key)
            requests = [self._request(sql, sources) for sql in asked]
            answers = world.admin.together([_READ_ONLY, *requests], [_ROLLBACK])[1:-1]
            if not all(isinstance(answer, Result) for answer in answers):  # after an error the rest is not asked
                segments = [part for request in requests for part in ([_READ_ONLY, request], [_ROLLBACK])]
                answers = world.admin.together(*segments)[1::3]
        except ServerError as error:
            return [error] * len(asked)
        return [answer for answer in answers if answer is not None]

    def _request(self, sql: Sql, sources: Mapping[str, Value]) -> Request:
        text, values = bound(with_stores(self._catalogue, sql.text), sources)
        return Request(text=text, values=values)

    def _told(self, world: World, text: str) -> str:
        """An error without what is hidden, and the same words in every run."""
        secrets = Secrets(self._catalogue)
        if not world.admin.lost:
            secrets.saw(world.look(None))
        return Names(datetime.now(UTC)).text(secrets.text(text))

    def _sources(self, world: World, subject: str, key: KeyText) -> Mapping[str, Value]:
        """The clock, the stores, and what the row gives; of a row that only its session sees, its key."""
        noun = self._catalogue.subjects[subject]
        sources: dict[str, Value] = {"now": world.now, **store_values(world.stores.inventory())}
        given = dict(rows_of(self._catalogue, subject, world.admin, sources)).get(key, {})
        return {**sources, **dict.fromkeys(noun.offers), **dict(zip(noun.key, key, strict=True)), **given}


def records(catalogue: Catalogue, observed: Sequence[Observing]) -> Iterator[ObservationRecord]:
    """One record for each observation and cost that has SQL, from what one scenario after another gave."""
    for state in catalogue.states:
        for number, sql in observations_of(catalogue, state):
            found = [each.tallies[state, number] for each in observed if (state, number) in each.tallies]
            left_out = _names_row(catalogue, state, number, sql) and not all(each.elsewhere for each in observed)
            verdict, because = _judged(catalogue, state, number, found, left_out=left_out)
            also = {other for tally in found for other in tally.also_in}
            yield ObservationRecord(
                state=state,
                observation=None if number == COST else number,
                verdict=verdict,
                because=because,
                runs=sum(tally.runs for tally in found),
                elsewhere=sum(sum(tally.elsewhere.values()) for tally in found),
                also_in=tuple(other for other in catalogue.states if other in also),
            )


def _names_row(catalogue: Catalogue, state: str, number: int, sql: Sql) -> bool:
    """Whether an observation is of one row: its parameters are the whole key. A cost never is."""
    key = catalogue.subjects[catalogue.states[state].subject].key
    return number != COST and frozenset(key) <= frozenset(parameters(sql))


def _judged(
    catalogue: Catalogue, state: str, number: int, found: Sequence[Tally], *, left_out: bool
) -> tuple[Verdict, str | None]:
    """What an observation is worth; ``left_out``: nobody ran it in other states."""
    also = {other: at for tally in reversed(found) for other, at in tally.also_in.items()}
    asked = {other for tally in found for other in tally.elsewhere}
    wrong = next((tally.wrong for tally in found if tally.wrong), None) or (
        None if left_out else _misleads(catalogue, state, number, also, asked)
    )
    if wrong:
        return Verdict.BROKEN, wrong
    if not any(tally.runs for tally in found):
        return Verdict.UNREACHED, "no scenario gets to its state"
    if left_out:
        return Verdict.INCOMPLETE, "it was not run in other states"
    for other in _also_in(catalogue, state, number):
        if other not in asked:
            return Verdict.UNREACHED, f"no scenario gets to {other}, where it is said to give a row too"
    return Verdict.VERIFIED, None


def _also_in(catalogue: Catalogue, state: str, number: int) -> tuple[str, ...]:
    """The other states in which it is said to give a row."""
    return () if number == COST else catalogue.states[state].observe[number].also_in


def _misleads(
    catalogue: Catalogue, state: str, number: int, also: Mapping[str, str], asked: Collection[str]
) -> str | None:
    """Why an observation is not what tells its state: a row in another one that it does not own up to, or no row."""
    said = _also_in(catalogue, state, number)
    unsaid = [other for other in catalogue.states if other in also and other not in said]
    if unsaid:
        more = ", ".join(unsaid)
        return f"it gives a row in {more} too, as at {also[unsaid[0]]}: ask for more, or say also_in: [{more}]"
    for other in said:
        if other in asked and other not in also:
            return f"it is said to give a row in {other} too, and nowhere did"
    return None


def _at(witness: Witness) -> str:
    return f"{witness.scenario}, step {witness.step}"


def _is_cost(found: Result) -> bool:
    if len(found.rows) != 1 or len(found.columns) != 2 or None in found.rows[0]:
        return False
    try:
        return Decimal(str(found.rows[0][0])).is_finite()
    except InvalidOperation:
        return False
