"""What one verification saw. ``Evidence`` is the file format, its JSON Schema is made from it.

Everything outside ``run`` is equal, byte for byte, between two runs of one catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT: Literal["failure-matrix/evidence/1"] = "failure-matrix/evidence/1"


class Verdict(StrEnum):
    """From best to worst; a roll-up takes the worst."""

    VERIFIED = "verified"
    WAIVED = "waived"
    UNREACHED = "unreached"
    STALE = "stale"
    INCOMPLETE = "incomplete"
    BROKEN = "broken"

    @property
    def badness(self) -> int:
        return _BADNESS[self]


_BADNESS = {verdict: place for place, verdict in enumerate(Verdict)}


def worst(verdicts: Iterable[Verdict], *, default: Verdict = Verdict.VERIFIED) -> Verdict:
    """The roll-up: the worst verdict of all, ``default`` of none."""
    return max(verdicts, key=lambda verdict: verdict.badness, default=default)


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Witness(Record):
    """A step at which something was seen. Step 0 is what was given."""

    scenario: str
    step: int


class Row(Record):
    """One answered result set or row count."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()  # the server's text


class ServerError(Record):
    """Severity, SQLSTATE and primary message only."""

    severity: str
    sqlstate: str
    message: str
    constraint: str | None = None


class Hop(Record):
    """One move on the declared path of a change. ``by`` is None where another session had made it before."""

    from_: str = Field(alias="from")
    by: str | None
    to: str


class Change(Record):
    """What one key did at one step, as committed, or as ``session`` sees it in its own transaction.

    An action that took effect and is declared to leave the state as it is gives one with ``from`` = ``to``.
    """

    subject: str
    key: tuple[str, ...]
    from_: str = Field(alias="from")
    to: str
    by: tuple[str, ...] = ()  # actions and events, in order, on the declared path
    path: tuple[Hop, ...] = ()
    late: bool = False  # declared by a path longer than one move
    session: str | None = None


class Seen(Record):
    """The state of one key, as one session sees it."""

    subject: str
    key: tuple[str, ...]
    state: str


FailureKind = Literal[
    "rows", "returns", "error", "notice", "keep", "waits", "releases", "then", "seen-by", "breaks", "unclassified",
    "ambiguous", "duplicate-key", "undeclared-move", "illegal-state", "invariant", "time-limit", "still-waiting",
    "could-not-look", "given",
]  # fmt: skip


class Failure(Record):
    """One thing that is wrong, told so that a tired person can act on it."""

    kind: FailureKind
    message: str  # one line: what happened
    expected: str
    observed: str
    place: str  # file:line of what was expected
    states: tuple[str, ...] = ()  # states that this puts in doubt
    subjects: tuple[str, ...] = ()  # subjects none of whose states can be told (unclassified, duplicate key)
    actions: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()


def of_failures(failures: Iterable[Failure]) -> Verdict:
    """The verdict that failures mean: where one only could not look, nobody knows, and nothing is shown broken."""
    kinds = {failure.kind for failure in failures}
    return Verdict.VERIFIED if not kinds else Verdict.INCOMPLETE if kinds == {"could-not-look"} else Verdict.BROKEN


class StepRecord(Record):
    number: int  # from 1, as the catalogue lists them
    in_: str | None = Field(default=None, alias="in")
    verb: str  # do, sql, at, event, kill
    name: str | None = None  # the action or event
    text: str  # the SQL or effect that ran, parameters as $1, …
    with_: dict[str, str | None] = Field(default={}, alias="with")  # parameters by name, as text
    at: str | None = None  # the clock when it ran
    in_transaction: bool = False  # after the step, its session holds a transaction open
    rows: int | None = None  # rows affected or returned by the last statement
    returns: Row | None = None
    error: ServerError | None = None
    notices: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()  # the sessions it was seen waiting for
    releases: tuple[int, ...] = ()  # numbers of the steps that this one set free
    released_by: int | None = None  # number of the step that set this one free
    then: tuple[Seen, ...] = ()  # every key as committed after the step
    seen_by: dict[str, tuple[Seen, ...]] = {}
    moves: tuple[Change, ...] = ()
    breaks: tuple[str, ...] = ()  # what broke as it was declared to
    failures: tuple[Failure, ...] = ()
    verdict: Verdict = Verdict.VERIFIED
    place: str = ""  # file:line


class OrderRecord(Record):
    """One order that did not hold, as it ran. Its steps have the numbers that the catalogue lists them by."""

    steps: tuple[StepRecord, ...] = ()  # as they were taken, up to the one that ended it
    failures: tuple[Failure, ...] = ()  # before its first step

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(step.number for step in self.steps)


class Orders(Record):
    """The interleavings of a scenario's steps; those that begin alike and end there are seen in one run."""

    exist: int = 1
    ran: int = 1  # the listed one included
    impossible: int = 0
    skipped: int = 0
    waiting: int = 0  # of those that ran: a step still waited when all had been taken
    broke: int = 0  # of those that ran: just as the scenario's ``breaks`` says
    failed: int = 0  # of those that ran
    failing: OrderRecord | None = None  # the shortest that failed
    breaking: OrderRecord | None = None  # the shortest that broke as it was declared to


class ScenarioRecord(Record):
    id: str
    title: str
    verdict: Verdict
    because: str | None = None  # why it is not verified
    orders: Orders = Orders()
    given: tuple[Seen, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    not_run: tuple[int, ...] = ()  # numbers of listed steps after the one that ended it
    failures: tuple[Failure, ...] = ()  # not of any one step
    fingerprint: str
    place: str = ""


class MechanismRecord(Record):
    """As good as the worst of the scenarios that show it."""

    id: str
    verdict: Verdict
    because: str | None = None
    scenarios: tuple[str, ...] = ()


class StateRecord(Record):
    id: str
    subject: str
    verdict: Verdict
    because: str | None = None
    fingerprint: str
    witnesses: tuple[Witness, ...] = ()
    rests_on: tuple[str, ...] = ()  # names in Evidence.digests


class MoveRecord(Record):
    from_: str = Field(alias="from")
    by: str
    to: str
    verdict: Verdict
    because: str | None = None
    witnesses: tuple[Witness, ...] = ()


class Outcome(StrEnum):
    """What came of trying an action in a state as a caller."""

    MOVED = "moved"
    REFUSED = "refused"
    TOOK_ANOTHER = "took another"
    HELD_BACK = "held back by duty alone"
    UNSAFE = "permitted but unsafe"
    NO_SUCH_CALLER = "no such caller"
    CANNOT_CALL = "cannot call"
    NOT_TRIED = "not tried"


class CellRecord(Record):
    """One (state, action, caller). Its verdict is None where nothing could be tried, ``because`` says why."""

    state: str
    action: str
    caller: str | None  # None: the catalogue declares no callers
    expected: Outcome
    observed: Outcome
    to: tuple[str, ...] = ()  # the states it moved to
    rows: int | None = None
    sqlstate: str | None = None
    answers: tuple[str, ...] = ()  # to ``refusal.ask``, wherever it was refused
    tries: int = 0
    verdict: Verdict | None
    because: str | None = None
    witnesses: tuple[Witness, ...] = ()  # the first of each outcome that counts


GuardPart = Literal["condition", "lock", "assignment", "drop"]
GuardOutcome = Literal["noticed", "missed", "not removable", "not tried"]


class GuardRecord(Record):
    """One piece of an action's SQL, removed alone. The verdict is None where its removal proves nothing."""

    action: str
    guard: str  # as written
    part: GuardPart
    function: str | None = None  # the PL/pgSQL function that it stands in
    start: int | None = None  # characters of the action's SQL, or of the function's body
    end: int | None = None
    outcome: GuardOutcome
    verdict: Verdict | None
    because: str | None = None
    noticed_by: tuple[str, ...] = ()  # "scenario x, step n: ..." or "cell state, action, caller: ..."
    shown_by: tuple[str, ...] = ()  # scenario/x, or state/x and caller/x: who noticed, as names in Evidence.digests


class PopulationRecord(Record):
    """Every combination of a subject's ``values``, inserted and classified."""

    subject: str
    combinations: int
    admitted: int  # by the schema
    hits: dict[str, int]  # state -> combinations in it
    verdict: Verdict
    because: str | None = None
    offending: dict[str, str | None] | None = None  # the smallest combination that is in no state, or in several
    states: tuple[str, ...] = ()  # that the offending combination is in; of an incomplete probe those that none is in


class ObservationRecord(Record):
    """An observation's SQL, or a retention cost's, run where its state was entered."""

    state: str
    observation: int | None  # its number in the state, from 0; None: the retention cost
    verdict: Verdict
    because: str | None = None
    runs: int = 0
    elsewhere: int = 0  # runs in other states of the subject, of one that names the row it looks at
    also_in: tuple[str, ...] = ()  # those of them in which it gave a row, as it says


class WaiverRecord(Record):
    """A waiver, and whether it may stand: past its date, or when its thing holds, it is itself broken."""

    id: str
    of: str
    owner: str
    reason: str
    until: str
    verdict: Verdict
    because: str | None = None


class InvariantRecord(Record):
    id: str
    verdict: Verdict
    because: str | None = None
    checked: int = 0  # after how many steps


class Count(Record):
    """So many of so many. What could not be tried, for a reason that is given, is not among ``of``."""

    of: int
    verified: int
    waived: int = 0
    not_tried: int = 0


class CatalogueRecord(Record):
    title: str
    fingerprint: str


class PostgreSQL(Record):
    major: int


class Run(Record):
    """Everything that differs from one run to the next."""

    started: str  # UTC, ISO 8601
    seconds: float
    postgresql: str  # exact version
    server: str  # embedded, prefix or dsn
    host: str
    commit: str | None
    version: str  # of this program


class Evidence(Record):
    format: Literal["failure-matrix/evidence/1"] = FORMAT
    catalogue: CatalogueRecord
    postgresql: PostgreSQL
    verdict: Verdict
    scenarios: tuple[ScenarioRecord, ...] = ()
    mechanisms: tuple[MechanismRecord, ...] = ()
    states: tuple[StateRecord, ...] = ()
    moves: tuple[MoveRecord, ...] = ()
    cells: tuple[CellRecord, ...] = ()
    guards: tuple[GuardRecord, ...] = ()
    population: tuple[PopulationRecord, ...] = ()
    observations: tuple[ObservationRecord, ...] = ()
    waivers: tuple[WaiverRecord, ...] = ()
    invariants: tuple[InvariantRecord, ...] = ()
    coverage: dict[str, Count] = {}  # scenarios, states, moves, invariants
    hidden: tuple[str, ...] = ()  # columns that are left out of it
    digests: dict[str, str] = {}  # what verdicts rest on -> its digest, see fingerprints
    run: Run
