"""Queries to paste into psql: they only read, and psql runs them as they stand.

Parameters become psql variables, set on lines above the query, so that ``:'id'`` is quoted by psql itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from failure_matrix.catalogue.model import Sql, Subject
from failure_matrix.catalogue.sql import Kind, parameters, significant, tokens
from failure_matrix.site import looks
from failure_matrix.site.book import Book
from failure_matrix.site.looks import CLOCK
from failure_matrix.site.words import visible

_STORE = """\
{name}(name, bytes, sha256, modified) AS (SELECT * FROM (VALUES
  -- a line for each file: ('its name', 123, 'its sha256 in hex', NULL),
  (NULL::text, NULL::bigint, NULL::text, NULL::timestamptz)) AS file WHERE column1 IS NOT NULL)"""
_NO_FILES = """\
{name}(name, bytes, sha256, modified) AS (  -- its files make no difference here
  SELECT NULL::text, NULL::bigint, NULL::text, NULL::timestamptz WHERE false)"""
_LOOKED = "looked"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """SQL to copy. Until a person says that they ``looked``, what it cannot know is answered "unknown"."""

    label: str
    sql: str
    looks: tuple[str, ...] = ()  # what they must look at and put in


def subject_probe(book: Book, id: str) -> Probe:
    """Which states one row is in: exactly one, or something is wrong."""
    subject = book.catalogue.subjects[id]
    states = {name: state for name, state in book.states_of[id].items() if not state.uncommitted}
    needs = {name: looks.of_predicate(book.catalogue, subject, state.when) for name, state in states.items()}
    needed = tuple(dict.fromkeys(what for each in needs.values() for what in each))
    some = bool(needed) and not all(needs.values())  # of some states one can tell before
    cases = []
    for name, state in states.items():
        looked = f":'{_LOOKED}'::boolean AND " if some and needs[name] else ""
        cases.append(f"CASE WHEN {looked}{_asked(book, state.when)} THEN {literal(name)} END")
    named = "concat_ws(', ',\n         " + ",\n         ".join(cases) + ")" if cases else "''"
    if some:
        unknown = f"CASE WHEN NOT :'{_LOOKED}'::boolean THEN {literal(_unknown(needed))} END"
        named = f"coalesce(nullif({named}, ''),\n         {unknown})"
    sqls = [subject.from_, *(each.when for each in states.values())]
    select = _select(book, subject, f"{named} AS matrix_state")
    return _probe(book, subject, sqls, select, label=f"Which state is this {id} in?", needed=needed, some=some)


def state_probe(book: Book, id: str) -> Probe:
    """One line when the row is in this state, none otherwise."""
    state = book.catalogue.states[id]
    subject = book.catalogue.subjects[state.subject]
    select = f"{_select(book, subject, '')}\n   AND {_asked(book, state.when)}"
    needed = looks.of_predicate(book.catalogue, subject, state.when)
    label = f"One line when this {state.subject} is {id}"
    return _probe(book, subject, [subject.from_, state.when], select, label=label, needed=needed)


def observation_probe(book: Book, sql: Sql, subject: str, label: str) -> Probe:
    """An observation's own query."""
    named = book.catalogue.subjects[subject]
    select = psql_text(book, sql).rstrip().rstrip(";")
    sent = ("what you sent",) if set(parameters(sql)) - {*named.key, CLOCK} else ()
    return _probe(book, named, [sql], select, label=label, needed=(*sent, *looks.of_query(book.catalogue, sql)))


def _unknown(needed: Iterable[str]) -> str:
    return f"unknown until you look at {' and '.join(needed)}"


def _select(book: Book, subject: Subject, state: str) -> str:
    shown = [column for column in subject.show if column not in subject.hide]
    columns = list(dict.fromkeys((*subject.key.values(), *((state,) if state else ()), *shown)))
    where = "\n   AND ".join(f"{column} = {_variable(name)}" for name, column in subject.key.items())
    listed = _listed(columns)
    return f"SELECT {listed}\n  FROM {psql_text(book, subject.from_).strip()}\n WHERE {where}"


def _listed(columns: list[str]) -> str:
    """Columns beside each other as far as a line goes."""
    lines = [""]
    for number, column in enumerate(columns):
        text = column + ("," if number + 1 < len(columns) else "")
        if lines[-1] and ("\n" in text or "\n" in lines[-1] or len(lines[-1]) + len(text) > 90):
            lines.append(text)
        else:
            lines[-1] = f"{lines[-1]} {text}".strip()
    return "\n       ".join(lines)


def _asked(book: Book, sql: Sql) -> str:
    """A predicate in parentheses; a comment at its end must not eat the last one."""
    text = psql_text(book, sql).strip()
    found = tokens(sql.text, sql.params)
    return f"({text}\n)" if any(token.kind is Kind.COMMENT for token in found) else f"({text})"


def _probe(
    book: Book,
    subject: Subject,
    sqls: list[Sql],
    select: str,
    *,
    label: str,
    needed: tuple[str, ...],
    some: bool = False,
) -> Probe:
    """The query with all that stands above it. What is needed must be looked at first, for ``some`` of its answers."""
    stores = _read(book, sqls)
    parameters_ = list(dict.fromkeys((*subject.key, *(name for sql in sqls for name in parameters(sql)))))
    used = [name for name in parameters_ if _variable(name) in select or (name == CLOCK and _clock(book) in select)]
    settings = "".join(f"{row}\n" for row in _settings(book, subject, used))
    lists = (_STORE if looks.files(store) in needed else _NO_FILES for store in stores)
    ctes = ",\n".join(each.format(name=_name(store)) for each, store in zip(lists, stores, strict=True))
    query = f"{_merged(ctes, select)}{_end(select)}"
    if needed:
        settings += f"-- yes once you looked at {' and '.join(needed)}, and put in what you saw\n\\set {_LOOKED} no\n"
    if needed and not some:
        query = f"\\if :{_LOOKED}\n{query}\n\\else\n\\echo {_unknown(needed)}\n\\endif"
    return Probe(label=label, sql=visible(settings + query), looks=needed)


def _read(book: Book, sqls: Sequence[Sql]) -> list[str]:
    """The stores that the query has to be given: of a name that is a column wherever it stands, none."""
    named = looks.named(book.catalogue, sqls)
    whole = len(sqls) > 1  # a relation and its conditions
    return [store for store in named if whole or looks.files(store) in looks.of_query(book.catalogue, sqls[0])]


def _merged(ctes: str, select: str) -> str:
    """The query with these before what it has of its own behind WITH."""
    if not ctes:
        return select
    words = significant(select, "none")
    if not words or words[0].name != "with":
        return f"WITH {ctes}\n{select}"
    own = words[2] if words[1].name == "recursive" else words[1]
    recursive = " RECURSIVE" if words[1].name == "recursive" else ""
    return f"{select[: words[0].start]}WITH{recursive} {ctes},\n{select[own.start :]}"


def _end(select: str) -> str:
    """What ends the query; a comment at its end must not eat it."""
    found = tokens(select, "none")
    return "\n;" if found and found[-1].kind is Kind.COMMENT else ";"


def _settings(book: Book, subject: Subject, names: Iterable[str]) -> Iterator[str]:
    examples = dict(zip(subject.key, example_key(book, subject), strict=True))
    asked = False
    for name in names:
        if name == CLOCK and name not in subject.key:
            if book.catalogue.settings.clock == "logical":
                yield "-- the logical clock, as your own system counts it\n\\set now 0"
        else:
            if name not in examples and not asked:
                yield "-- as you sent it"
                asked = True
            yield f"\\set {_plain(name)} {_set_value(examples.get(name, ''))}"


def _set_value(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.-]+", text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n") + "'"


def psql_text(book: Book, sql: Sql) -> str:
    """SQL with its parameters as psql variables."""
    if sql.params == "none":
        return sql.text
    pieces = []
    for token in tokens(sql.text, sql.params):
        if token.kind is Kind.PARAMETER or (token.kind is Kind.POSITION and sql.params == "numeric"):
            name = token.name if token.kind is Kind.PARAMETER else token.text[1:]
            pieces.append(_clock(book) if name == CLOCK else _variable(name))
        else:
            pieces.append(token.text.replace("%%", "%") if sql.params == "pyformat" else token.text)
    return "".join(pieces)


def _clock(book: Book) -> str:
    return ":now" if book.catalogue.settings.clock == "logical" else "now()"


def _variable(name: str) -> str:
    return f":'{_plain(name)}'"


def _plain(name: str) -> str:
    """A parameter as psql names a variable; ``looked`` is ours."""
    plain = re.sub(r"[^\w]", "_", name)
    return f"{plain}_" if plain == _LOOKED else plain


def _name(identifier: str) -> str:
    return identifier if re.fullmatch(r"[a-z_][a-z0-9_]*", identifier) else '"' + identifier.replace('"', '""') + '"'


def literal(text: str | None) -> str:
    """A value as a SQL literal that is safe in psql and in any server setting."""
    if text is None:
        return "NULL"
    quoted = text.replace("'", "''")
    return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in quoted else f"'{quoted}'"


def explain_line(id: str, subject: Subject) -> str:
    """The command that names the row, with a key to replace."""
    keys = " ".join("42" if len(subject.key) == 1 else name.upper() for name in subject.key)
    return f"matrix explain {id} {keys}"


def example_key(book: Book, subject: Subject) -> tuple[str, ...]:
    """A key that a scenario used, so that its type is right; 42 where there is none."""
    id = next(id for id, each in book.catalogue.subjects.items() if each is subject)
    return book.example_keys.get(id, tuple("42" for _ in subject.key))
