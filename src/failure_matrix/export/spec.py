"""A scenario as a ``.spec`` file for PostgreSQL's isolationtester, and what of it such a file cannot say.

It runs the steps and prints what each gave. It expects nothing: no states, no rows, no waiting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from failure_matrix.catalogue.model import Action, Catalogue, Event, Given, Scalar, SessionSetup, Sql, Step
from failure_matrix.catalogue.sql import significant
from failure_matrix.evidence.schema import split_statements
from failure_matrix.export.inline import CannotExport, inline, literal
from failure_matrix.export.teardown import undo

WORLD = "world"
_ENDINGS = ("commit", "rollback")  # events that are there without being declared
_EXPECTS = (
    "rows", "returns", "results", "error", "notice", "waits", "releases", "then", "seen_by", "breaks",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One file: its text, and what was left out, a line each."""

    scenario: str
    text: str
    left_out: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Line:
    """One step that can be written."""

    name: str
    number: int  # as listed; 0 of a step that comes with ``after``
    session: str
    sql: str


@dataclass(kw_only=True)
class _Writer:
    catalogue: Catalogue
    id: str
    now: Scalar = 0
    left_out: list[str] = field(default_factory=list)
    lines: list[_Line] = field(default_factory=list)
    begin: dict[str, str] = field(default_factory=dict)  # session -> what sets it up

    def schema(self) -> list[str]:
        """The schema, an item each; what cannot be written is left out."""
        items = (self._inline(f"schema {n}", sql) for n, sql in enumerate(self.catalogue.settings.schema_, 1))
        return [item for item in items if item is not None]

    def setups(self, setups: Mapping[str, SessionSetup]) -> None:
        """Add what sets sessions up."""
        for name, setup in setups.items():
            isolation = f"SET default_transaction_isolation = '{setup.isolation}'" if setup.isolation else None
            own = self._inline(f"session {name}", setup.setup) if setup.setup is not None else None
            if isolation or own:
                self.begin[name] = ";\n".join(part for part in (isolation, own) if part)

    def _inline(self, where: str, sql: Sql) -> str | None:
        try:
            return inline(sql, {})
        except CannotExport as reason:
            self.left_out.append(f"{where}: {reason}")
            return None

    def step(self, scenario: str, number: int, step: Step) -> None:
        """Add one step, or say why it is left out."""
        own = scenario == self.id
        where = f"step {number}" if own else f"step {number} of {scenario}"
        if step.at is not None:
            self.now = _time(step.at)
        sql, why = _sql(self.catalogue, step, self.now)
        self.left_out += [f"{where}: {reason}" for reason in why]
        if sql is not None:
            name = f"{'' if own else _word(scenario) + '_'}s{number}_{_word(step.do or step.event or step.verb)}"
            session = WORLD if step.in_ is None else step.in_
            self.lines.append(_Line(name=name, number=number if own else 0, session=session, sql=sql))


def spec(catalogue: Catalogue, id: str, *, orders: Sequence[Sequence[int]] | None = None) -> Spec:
    """Write one scenario down. ``orders`` are the orders to run, by numbers of steps; else those of the catalogue."""
    chain = [id]
    while (earlier := catalogue.scenarios[chain[0]].after) is not None:
        chain.insert(0, earlier)
    writer = _Writer(catalogue=catalogue, id=id, now=_start(catalogue))
    setups = dict(catalogue.sessions)
    for each in chain:
        setups |= catalogue.scenarios[each].sessions
        for number, step in enumerate(catalogue.scenarios[each].steps, 1):
            writer.step(each, number, step)
    writer.setups(setups)
    given, lost = _given(catalogue.scenarios[chain[0]].given)
    drops, forever = undo(catalogue.settings.schema_)
    writer.left_out += [*lost, *(f"teardown: what '{text} …' does is not undone" for text in forever)]
    scenario = catalogue.scenarios[id]
    blocks = [
        *(_block("setup", sql) for sql in (*writer.schema(), *given)),
        *(_block("teardown", sql) for sql in (";\n".join(drops),) if drops),
        *_sessions(writer.lines, writer.begin),
        *_permutations(writer, scenario.orders if orders is None else orders),
    ]
    expecting = [number for number, step in enumerate(scenario.steps, 1) if _expects(step)]
    if expecting:
        listed = ", ".join(map(str, expecting))
        writer.left_out.append(f"what steps expect: {listed}; isolationtester prints what they gave")
    return Spec(scenario=id, text=_head(writer, scenario.title) + "\n".join(blocks), left_out=tuple(writer.left_out))


def _expects(step: Step) -> bool:
    return any(getattr(step, key) not in (None, (), {}) for key in _EXPECTS)


def _head(writer: _Writer, title: str) -> str:
    lines = [f"{writer.id}: {title}", "Written by matrix export spec." + (" It leaves out:" if writer.left_out else "")]
    return "".join(f"# {' '.join(line.split())}\n" for line in (*lines, *writer.left_out)) + "\n"


def _start(catalogue: Catalogue) -> Scalar:
    """What the clock says before any step: 0, or the first time where times are no whole numbers."""
    times = (step.at for scenario in catalogue.scenarios.values() for step in scenario.steps if step.at is not None)
    first = _time(next(times, "0"))
    return first if isinstance(first, str) and "$" not in first else 0


def _time(written: str) -> int | str:
    return int(written) if re.fullmatch(r"-?[0-9]+", written) else written


def _sql(catalogue: Catalogue, step: Step, now: Scalar) -> tuple[str | None, list[str]]:
    """The step's SQL with its values, or None; and what is left out, with the reason."""
    why: list[str] = []
    if step.kill is not None:
        return None, [f"kill {step.kill}: isolationtester ends with the first connection that it loses"]
    noun: Action | Event | None = None
    if step.do is not None:
        noun = catalogue.actions[step.do]
    elif step.event in _ENDINGS and step.sql is None:
        return step.event.upper(), []
    elif step.event is not None:
        noun = catalogue.events.get(step.event)
    if noun is not None and noun.store is not None:
        why.append(f"the effect on a store, {noun.store.verb} {noun.store.target}")
    sql = step.sql or (noun.sql if noun is not None else None)
    if sql is None:
        if step.at is not None:
            return None, [f"at {step.at}: later steps have :now written in as it is in the listed order"]
        return None, why or [f"{step.event or step.do or 'nothing'}: it has no SQL"]
    try:
        return inline(sql, {"now": now, **_values(catalogue, step, noun)}), why
    except CannotExport as reason:
        return None, [*why, str(reason)]


def _values(catalogue: Catalogue, step: Step, noun: Action | Event | None) -> Mapping[str, Scalar]:
    """What the step binds. Raises CannotExport where that is known only when it runs."""
    caller: Mapping[str, Scalar] = {}
    if step.as_ is not None:
        found = catalogue.callers[step.as_]
        if found.sql is not None:
            raise CannotExport(f"as {step.as_}: what the caller binds is known only when it runs")
        caller = found.gives
    usual = noun.with_ if noun is not None and step.sql is None else {}
    values = {**usual, **caller, **step.with_}
    kept = [str(value) for value in values.values() if isinstance(value, str) and "$" in value.replace("$$", "")]
    if kept:
        raise CannotExport(f"'{kept[0]}' is a kept value, known only when it runs")
    return {name: value.replace("$$", "$") if isinstance(value, str) else value for name, value in values.items()}


def _given(given: Given) -> tuple[list[str], list[str]]:
    """The statements that put there what is given, and what is left out."""
    statements: list[str] = []
    lost = [f"given: the files of store {store}" for store, files in given.files.items() if files]
    if given.sql is not None:
        try:
            statements.append(inline(given.sql, {}))
        except CannotExport as reason:
            lost.append(f"given: {reason}")
    for table, rows in given.tables.items():
        target = ".".join(_identifier(part) for part in table.split("."))
        for row in rows:
            columns = ", ".join(_identifier(column) for column in row)
            values = ", ".join(_untyped(value) for value in row.values())
            statements.append(
                f"INSERT INTO {target} " + (f"({columns}) VALUES ({values})" if row else "DEFAULT VALUES")
            )
    return statements, lost


def _untyped(value: Scalar) -> str:
    """A value that takes the type of its column."""
    return literal(value) if value is None or isinstance(value, bool) else literal(str(value))


def _identifier(name: str) -> str:
    if "}" in name:
        return 'U&"' + name.replace("\\", "\\\\").replace('"', '""').replace("}", "\\007D") + '"'
    return '"' + name.replace('"', '""') + '"'


def _word(text: str) -> str:
    """A text as a name that a ``.spec`` file takes unquoted."""
    return re.sub(r"[^A-Za-z0-9]", "_", text)


def _block(kind: str, sql: str) -> str:
    return f"{kind} {{ {sql} }}\n" if "\n" not in sql else f"{kind} {{\n{sql}\n}}\n"


def _sessions(lines: Sequence[_Line], begin: Mapping[str, str]) -> Iterator[str]:
    names = list(dict.fromkeys(line.session for line in lines))
    for number, name in enumerate(names, 1):
        # the number keeps two names apart that differ only in what a name here cannot have
        text = f"session {_word(name) if _word(name) == name and name[:1].isalpha() else f'session_{number}'}\n"
        text += _block("setup", begin[name]) if name in begin else ""
        own = [line for line in lines if line.session == name]
        text += "".join(_block(f"step {line.name}", line.sql) for line in own)
        yield text + (_block("teardown", "ROLLBACK") if _leaves_open([line.sql for line in own]) else "")


def _leaves_open(statements: Sequence[str]) -> bool:
    """Whether a transaction is open after these; the teardown would wait for it for ever."""
    left = False
    for sql in statements:
        for statement in split_statements(sql):
            words = [token.text.lower() for token in significant(statement, "none")[:2]]
            if words[:1] in (["begin"], ["start"]):
                left = True
            elif words[:1] in (["commit"], ["end"], ["abort"], ["rollback"]) or words == ["prepare", "transaction"]:
                left = left and words == ["rollback", "to"]
    return left


def _permutations(writer: _Writer, orders: str | Sequence[Sequence[int]]) -> Iterator[str]:
    before = [line.name for line in writer.lines if not line.number]
    names = {line.number: line.name for line in writer.lines if line.number}
    if orders == "all" and not before:
        return
    if orders == "all":
        writer.left_out.append("all orders: it begins after another scenario, so only the listed one is written")
    listed = [tuple(names)] if isinstance(orders, str) else orders
    for order in listed:
        yield f"permutation {' '.join([*before, *(names[number] for number in order if number in names)])}"
