"""A scenario as text to paste into psql: a terminal a session, blocks in the order they ran."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from failure_matrix.catalogue.model import Action, Event, Scalar, Scenario, Sql, Step, StoreEffect
from failure_matrix.catalogue.sql import Kind, statement, tokens
from failure_matrix.evidence.records import ScenarioRecord, StepRecord
from failure_matrix.site.book import Book, to_scenario
from failure_matrix.site.looks import CLOCK
from failure_matrix.site.probes import literal
from failure_matrix.site.words import Phrase, prose, say, visible

SCHEMA = "replay"


@dataclass(frozen=True, kw_only=True)
class Block:
    """What to paste at once, and where."""

    label: str
    sql: str


@dataclass(frozen=True, kw_only=True)
class Replay:
    intro: Phrase
    blocks: tuple[Block, ...]


def replay(book: Book, noun: Scenario, record: ScenarioRecord) -> Replay | None:
    """The replay of what ran; None where the catalogue's steps are not those that ran."""
    if len(noun.steps) < max(step.number for step in record.steps):
        return None
    names = list(dict.fromkeys(step.in_ for step in record.steps if step.in_))
    terminals = " and ".join(names) if len(names) < 3 else ", ".join(names)
    where = f"A terminal for each session ({terminals}), on a database to play in; schema {SCHEMA} holds it all."
    steps = tuple(_blocks(book, noun, record))
    if noun.after:
        intro = say("First replay ", to_scenario(book, noun.after), ", then go on in the same schema. ", where)
        return Replay(intro=intro, blocks=steps)
    setup = Block(label="Before the first step, in any terminal", sql=_setup(book, noun))
    return Replay(intro=say(where), blocks=(setup, *steps))


def _setup(book: Book, noun: Scenario) -> str:
    lines = [f"CREATE SCHEMA {SCHEMA};", f"SET search_path = {SCHEMA};"]
    lines += [_ended(sql.text) for sql in book.catalogue.settings.schema_]
    if noun.given.sql:
        lines.append(_ended(noun.given.sql.text))
    for table, rows in noun.given.tables.items():
        for row in rows:
            hidden = book.catalogue.hidden
            values = ", ".join("DEFAULT" if name in hidden else _scalar(each) for name, each in row.items())
            lines.append(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values});"
                if row
                else f"INSERT INTO {table} DEFAULT VALUES;"
            )
    for store, files in noun.given.files.items():
        lines += [f"-- store {store}: a file {prose(name)}" for name in files]
    return visible("\n".join(lines))


def _blocks(book: Book, noun: Scenario, record: ScenarioRecord) -> Iterator[Block]:
    """Steps that follow each other in one terminal are one block; what only happens goes along as a comment."""
    begun: set[str] = set()
    terminal: str | None = None
    numbers: list[int] = []
    lines: list[str] = []
    for step in record.steps:
        listed = noun.steps[step.number - 1]
        found = list(_lines(book, listed, step))
        where = step.in_ or ("any" if _sql(listed, _deed(book, listed)) else None)
        if where is not None and terminal is not None and where != terminal:
            yield _block(terminal, numbers, lines)
            numbers, lines, terminal = [], [], None
        if step.in_ and step.in_ not in begun:
            begun.add(step.in_)
            lines += _first_lines(book, noun, step.in_)
        terminal = where or terminal
        numbers.append(step.number)
        lines += found
    if lines:
        yield _block(terminal or "any", numbers, lines)


def _block(terminal: str, numbers: list[int], lines: list[str]) -> Block:
    steps = f"step {numbers[0]}" if len(numbers) == 1 else f"steps {numbers[0]} to {numbers[-1]}"
    where = "Any terminal" if terminal == "any" else f"Terminal {terminal}"
    return Block(label=f"{where}, {steps}", sql=visible("\n".join(lines)))


def _first_lines(book: Book, noun: Scenario, session: str) -> Iterator[str]:
    setup = noun.sessions.get(session) or book.catalogue.sessions.get(session)
    yield f"SET search_path = {SCHEMA};"
    if setup and setup.isolation:
        yield f"SET default_transaction_isolation = '{setup.isolation}';"
    if setup and setup.setup:
        yield _ended(setup.setup.text)


def _lines(book: Book, step: Step, record: StepRecord) -> Iterator[str]:
    deed = _deed(book, step)
    sql = _sql(step, deed)
    named = record.name or record.verb
    waits = f", waits for {' and '.join(record.waits)}" if record.waits else ""
    yield f"-- {record.number}: {prose(named)}{waits}"
    if record.verb == "at":
        yield f"-- the clock is now {prose(record.at or '')}"
    if record.verb == "kill":
        yield f"-- end the backend of terminal {prose(step.kill or '')}: SELECT pg_terminate_backend(its pid);"
    if sql:
        typed = {**(deed.with_ if deed else {}), **step.with_}
        yield _ended(_bound(sql, record, typed))
    if deed and deed.store:
        yield f"-- {_effect(deed.store, record, after_sql=sql is not None)}"


def _deed(book: Book, step: Step) -> Action | Event | None:
    if step.do is not None:
        return book.catalogue.actions.get(step.do)
    return book.catalogue.events.get(step.event) if step.event is not None else None


def _sql(step: Step, deed: Action | Event | None) -> Sql | None:
    return step.sql or (deed.sql if deed else None)


def _effect(effect: StoreEffect, record: StepRecord, *, after_sql: bool) -> str:
    """What happens in the store, with the name of the file; nothing where the SQL before it gave no row."""
    target = re.sub(r"\$(\w+)", lambda name: record.with_.get(name[1]) or name[0], effect.target)
    what = prose(f"{effect.verb} {target}")
    if record.rows == 0:
        return f"{what}: not done, {'the statement gave no row' if after_sql else 'the store refused it'}"
    return f"then, in its store: {what}" if after_sql else f"in its store: {what}"


def _bound(sql: Sql, record: StepRecord, typed: Mapping[str, Scalar]) -> str:
    """SQL with the values that it ran with: whole numbers bare, all else untyped, as they were bound."""
    prepared = statement(sql)
    if not prepared.parameters:
        return prepared.text
    values: dict[str, str] = {}
    for name in prepared.parameters:
        text = record.at if name == CLOCK and name not in record.with_ else record.with_.get(name)
        whole = name == CLOCK or (isinstance(typed.get(name), int) and not isinstance(typed.get(name), bool))
        values[name] = text if whole and text is not None and text.lstrip("-").isdigit() else literal(text)
    pieces = []
    for token in tokens(prepared.text, "numeric"):
        number = int(token.text[1:]) if token.kind is Kind.POSITION else 0
        pieces.append(values[prepared.parameters[number - 1]] if 0 < number <= len(prepared.parameters) else token.text)
    return "".join(pieces)


def _scalar(each: Scalar) -> str:
    match each:
        case None:
            return "NULL"
        case bool():
            return "true" if each else "false"
        case str():
            return literal(each)
        case _:
            return str(each)


def _ended(text: str) -> str:
    """A statement with its semicolon; on a line of its own where a comment ends the text."""
    text = text.strip()
    if text.endswith(";"):
        return text
    last = tokens(text, "none")[-1:]
    return f"{text}\n;" if last and last[0].kind is Kind.COMMENT else f"{text};"
