"""The nouns of a catalogue, frozen, as the YAML spells them.

A noun knows nothing of the file it came from: ``Catalogue.places`` maps the path of a value, such as
``("states", "ready", "when")``, to where it stands. SQL is a ``Sql`` whose text has been read already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation, StringConstraints

Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Scalar = str | int | Decimal | bool | None  # a YAML 1.2 core scalar; bool before int in checks
ParameterStyle = Literal["named", "pyformat", "numeric", "none"]

ABSENT = "absent"  # the state of a key that no row has


class Noun(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Sql(Noun):
    """SQL with its parameters spelled as ``params`` says; ``text`` is what runs."""

    text: Text
    params: ParameterStyle = "named"
    origin: str | None = None  # the file or package it was read from, as the catalogue names it


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


States = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]  # state ids, "absent" or "$name"
Texts = Annotated[tuple[Text, ...], BeforeValidator(_one_or_many)]
Moves = dict[str, States]  # from state -> to states


class Settings(Noun):
    title: Text
    about: Text | None = None
    schema_: tuple[Sql, ...] = Field(default=(), alias="schema")  # each runs in its own transaction
    clock: Literal["logical", "wall"] = "logical"
    strict: bool = False  # warnings are errors
    most_orders: int = 2000  # of one scenario that are run besides the listed one
    require: int | None = None  # coverage that verify asks for, in percent


class Owner(Noun):
    title: Text
    reach: Text | None = None


class Store(Noun):
    directory: Text  # relative; verify puts it into a temporary directory
    title: Text | None = None


class Subject(Noun):
    """A kind of thing that is in exactly one state at a time."""

    key: dict[str, str]  # parameter name -> column, in key order
    from_: Sql = Field(alias="from")
    show: tuple[str, ...] = ()  # column expressions
    hide: tuple[str, ...] = ()  # of show: never in evidence or pages
    offers: dict[str, str] = {}  # further parameter name -> column
    spare: dict[str, Scalar] = {}  # a key that no row has, for sweeping what happens to "absent"
    values: dict[str, tuple[Scalar, ...]] = {}  # relation.column, or $now -> values for the population probe
    since: str | None = None
    title: Text | None = None


class Observation(Noun):
    see: Text
    proves: Text | None = None
    does_not_prove: Text | None = None
    sql: Sql | None = None  # gives a row in this state
    also_in: tuple[Id, ...] = ()  # the other states of the subject in which it gives one, where it binds the key


class Retention(Noun):
    keep: Text
    cost: Sql | None = None  # gives one row: a number and its unit


class State(Noun):
    """One row of the matrix."""

    subject: Id
    title: Text
    when: Sql
    about: Text | None = None  # one sentence
    also_called: tuple[Text, ...] = ()
    owner: Id | None = None
    observe: tuple[Observation, ...] = ()
    do_not: tuple[Text, ...] = ()
    mistaken_for: dict[str, Text] = {}  # state id -> how to tell them apart
    reverse: dict[str, Text] = {}  # action or event id -> criterion
    retention: Retention | None = None
    complete_when: Text | None = None
    final: bool = False
    illegal: bool = False
    uncommitted: bool = False


class ErrorPattern(Noun):
    """An error as the server reports it: by SQLSTATE, and by constraint where that matters."""

    sqlstate: Annotated[str, StringConstraints(pattern=r"^[0-9A-Z]{5}$")]
    constraint: str | None = None


def _error(value: Any) -> Any:
    return {"sqlstate": value} if isinstance(value, str) else value


Error = Annotated[ErrorPattern, BeforeValidator(_error)]
Row = dict[str, Scalar] | tuple[Scalar, ...]


class Looks(Noun):
    """What the answer to a refused action looks like; all that is given must hold."""

    rows: int | None = None
    returns: tuple[Row, ...] | None = None
    error: Error | None = None
    silent: bool = False  # it reports a row and changes nothing


class Refusal(Noun):
    looks: Annotated[tuple[Looks, ...], BeforeValidator(_one_or_many)] = (Looks(rows=0),)  # any of them
    means: dict[str, Text] = {}  # state found afterwards, or "otherwise" -> what it means
    ask: Sql | None = None  # asks the record what became of it, by the action's own parameters; one row at most

    # ``means`` may be written as one text for every state
    @classmethod
    def everywhere(cls, text: str) -> Self:
        return cls(means={"otherwise": text})


class StoreEffect(Noun):
    """One effect on a file of a store; ``create`` never overwrites."""

    create: str | None = None
    write: str | None = None
    remove: str | None = None
    truncate: str | None = None
    corrupt: str | None = None
    content: str | None = None

    @property
    def verb(self) -> str:
        return next(verb for verb in STORE_VERBS if getattr(self, verb) is not None)

    @property
    def target(self) -> str:
        """``store/name``, perhaps with ``$parameters``."""
        return str(getattr(self, self.verb))


STORE_VERBS = ("create", "write", "remove", "truncate", "corrupt")


class Hazard(Noun):
    """What a statement lets through and should not; without ``caller`` for every caller."""

    caller: Id | None = None
    moves: Moves
    because: Text


class Guards(Noun):
    """Guards that stand outside of the action's own statement."""

    in_: Texts = Field(default=(), alias="in")  # PL/pgSQL functions whose bodies hold guards
    drop: dict[Id, Sql] = {}  # anything else: the SQL that removes it from the temporary database


class Action(Noun):
    """Something a person or a program may do, with its guards in the statement."""

    subject: Id
    title: Text
    sql: Sql | None = None
    store: StoreEffect | None = None
    owner: Id | None = None
    permits: tuple[str, ...] | None = None  # caller ids; None: everyone
    with_: dict[str, Scalar] = Field(default={}, alias="with")
    requires: Sql | None = None  # a predicate the statement does not check
    moves: Moves = {}
    also: Moves = {}  # what other rows of the subject may do in the same step
    refusal: Refusal = Refusal()
    instead_of: Id | None = None
    hazards: tuple[Hazard, ...] = ()
    guards: Guards = Guards()
    about: Text | None = None


class Event(Noun):
    """Something that happens to the system."""

    title: Text
    at: Sql | None = None  # when, for a time event
    sql: Sql | None = None
    store: StoreEffect | None = None
    kill: bool = False
    with_: dict[str, Scalar] = Field(default={}, alias="with")
    moves: Moves = {}
    about: Text | None = None


class Caller(Noun):
    """Who tries an action: SQL whose one row binds parameters, or constants. A catalogue may write either bare."""

    title: Text | None = None
    sql: Sql | None = None
    gives: dict[str, Scalar] = {}


class SessionSetup(Noun):
    setup: Sql | None = None
    isolation: Literal["read committed", "repeatable read", "serializable"] | None = None
    title: Text | None = None


Key = Scalar | tuple[Scalar, ...]  # composite keys in key order
Expected = dict[str, dict[Key, str]]  # subject -> key -> state id, "absent" or "$name"


class Step(Noun):
    """One thing that happens, and what it must show. Exactly one verb."""

    in_: str | None = Field(default=None, alias="in")
    do: Id | None = None
    sql: Sql | None = None
    at: str | None = None
    event: Id | None = None
    kill: str | None = None
    with_: dict[str, Scalar] = Field(default={}, alias="with")
    as_: Id | None = Field(default=None, alias="as")
    carries_out: Id | None = None  # a sql step that is this action
    limit: Decimal | None = None  # seconds

    rows: int | None = None
    returns: tuple[Row, ...] | None = None
    results: tuple[tuple[Row, ...] | int | None, ...] | None = None
    error: Error | None = None
    notice: Texts | None = None
    waits: Annotated[tuple[str, ...], BeforeValidator(_one_or_many)] | None = None  # sessions, or "maybe"
    releases: Annotated[tuple[str, ...], BeforeValidator(_one_or_many)] = ()
    keep: dict[str, str] = {}  # name -> column of the first row
    then: Expected = {}
    seen_by: dict[str, Expected] = {}
    breaks: Annotated[tuple[str, ...], BeforeValidator(_one_or_many)] = ()

    @property
    def verb(self) -> str:
        """The word that names the step: the first of ``VERBS`` that it has."""
        return next((verb for verb in VERBS if getattr(self, verb) is not None), "nothing")


VERBS = ("do", "sql", "kill", "at", "event")  # the first that is set names the step


class Given(Noun):
    """What is there before the first step."""

    tables: dict[str, tuple[dict[str, Scalar], ...]] = {}
    files: dict[str, dict[str, str]] = {}  # store -> name -> content
    sql: Sql | None = None


class Scenario(Noun):
    title: Text
    steps: tuple[Step, ...]
    shows: Texts = ()
    does_not_show: Texts = ()
    given: Given = Given()
    after: Id | None = None
    sessions: dict[str, SessionSetup] = {}
    orders: Literal["listed", "all"] = "listed"
    breaks: Annotated[tuple[str, ...], BeforeValidator(_one_or_many)] = ()


class Mechanism(Noun):
    """Something that the whole relies on, shown by scenarios; as good as the worst of them."""

    title: Text
    scenarios: tuple[Id, ...]


class Invariant(Noun):
    title: Text
    sql: Sql
    about: Text | None = None


class Exercise(Noun):
    title: Text
    question: Text
    target: Text
    owner: Id | None = None
    scenario: Id | None = None


class Waiver(Noun):
    of: Text  # "state ready", "move ready acquire leased", "scenario x", ...
    owner: Id
    because: Text
    until: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")]


@dataclass(frozen=True, kw_only=True, order=True)
class Place:
    """Where something stands: the path as given, line and column from 1."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class Catalogue(Noun):
    """All that a catalogue directory declares."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, arbitrary_types_allowed=True)

    settings: Settings = Field(alias="catalogue")
    owners: dict[Id, Owner] = {}
    stores: dict[Id, Store] = {}
    subjects: dict[Id, Subject] = {}
    states: dict[Id, State] = {}
    callers: dict[Id, Caller] = {}
    actions: dict[Id, Action] = {}
    events: dict[Id, Event] = {}
    sessions: dict[str, SessionSetup] = {}
    scenarios: dict[Id, Scenario] = {}
    mechanisms: dict[Id, Mechanism] = {}
    invariants: dict[Id, Invariant] = {}
    exercises: dict[Id, Exercise] = {}
    waivers: dict[Id, Waiver] = {}

    directory: Path = Field(default=Path(), exclude=True)
    places: SkipValidation[Mapping[tuple[Any, ...], Place]] = Field(default={}, exclude=True, repr=False)
    notes: tuple[Any, ...] = Field(default=(), exclude=True, repr=False)  # findings of reading, warnings all

    def place(self, *path: Any) -> Place:
        """Where the value at ``path`` stands, or its nearest enclosing value."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path) or Place(path=str(self.directory), line=1, column=1)

    @property
    def hidden(self) -> frozenset[str]:
        """Names, without their tables, of the columns that never reach evidence or pages."""
        columns = (column for subject in self.subjects.values() for column in subject.hide)
        return frozenset(column.rsplit(".", 1)[-1].strip('"') for column in columns)

    def states_of(self, subject: str) -> dict[str, State]:
        """The states of one subject, in the author's order."""
        return {id: state for id, state in self.states.items() if state.subject == subject}
