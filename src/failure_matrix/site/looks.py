"""What a person must look at before a query can tell: files that the database does not hold, a logical clock.

In doubt they are asked to look: an answer that was not looked for must not be given.
"""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.catalogue.model import Catalogue, Sql, Subject
from failure_matrix.catalogue.sql import Kind, Token, identifiers, parameters, significant

CLOCK = "now"

_FILE_COLUMNS = frozenset(("name", "bytes", "sha256", "modified"))
_NEXT = frozenset(("join", "left", "right", "full", "inner", "cross", "natural"))
_AFTER_A_COLUMN = frozenset(("is", "in", "like", "ilike", "between", "not", "similar"))


def of_predicate(catalogue: Catalogue, subject: Subject, when: Sql) -> tuple[str, ...]:
    """What must be looked at before it can be told whether a row is in the state.

    Files that only stand beside the row do not matter to a state that says nothing about them.
    """
    relation = significant(subject.from_.text, subject.from_.params)
    needed = []
    for store in named(catalogue, [subject.from_, when]):
        names = _only_beside(relation, store)
        if names is None or _speaks_of(significant(when.text, when.params), names | _FILE_COLUMNS):
            needed.append(store)
    return _told(catalogue, [when], needed)


def of_query(catalogue: Catalogue, sql: Sql) -> tuple[str, ...]:
    """What must be looked at before a query's answer means anything."""
    found = significant(sql.text, sql.params)
    return _told(catalogue, [sql], [store for store in named(catalogue, [sql]) if not _is_column(found, store)])


def named(catalogue: Catalogue, sqls: Sequence[Sql]) -> list[str]:
    """The stores whose name stands in SQL, be it as something else."""
    found = frozenset(name for sql in sqls for name in identifiers(sql.text))
    return [store for store in catalogue.stores if store in found]


def files(store: str) -> str:
    """The files of a store, in words."""
    return f"the files of {store}"


def _told(catalogue: Catalogue, sqls: Sequence[Sql], needed: Sequence[str]) -> tuple[str, ...]:
    timed = any(CLOCK in parameters(sql) for sql in sqls) and catalogue.settings.clock == "logical"
    return (*(["the clock"] if timed else []), *map(files, needed))


def _is_column(found: Sequence[Token], name: str) -> bool:
    """Whether a name is nothing but a column wherever it stands: behind a point, or compared."""
    places = [at for at, token in enumerate(found) if _is(token, name)]
    after = {at: found[at + 1] for at in places if at + 1 < len(found)}
    return all(
        (at > 0 and found[at - 1].text == ".")
        or (at in after and (after[at].kind is Kind.OPERATOR or after[at].name in _AFTER_A_COLUMN))
        for at in places
    )


def _only_beside(relation: Sequence[Token], store: str) -> frozenset[str] | None:
    """The names of a store that is joined to its left, plainly, and that nothing after that speaks of; else None."""
    places = [at for at, token in enumerate(relation) if _is(token, store)]
    if not places:
        return frozenset((store,))
    first = places[0]
    before = [token.name for token in relation[max(first - 3, 0) : first]]
    if before[-2:] != ["left", "join"] and before[-3:] != ["left", "outer", "join"]:
        return None
    if any(token.text in "()" for token in relation[:first]) or any(_is(token, "lateral") for token in relation):
        return None
    at = first + 1
    at += at < len(relation) and _is(relation[at], "as")
    alias = relation[at] if at < len(relation) and relation[at].kind in (Kind.WORD, Kind.QUOTED) else None
    if alias is None or alias.name in ("on", "using"):
        names, rest = frozenset((store,)), relation[at:]
    else:
        names, rest = frozenset((store, alias.name)), relation[at + 1 :]
    if not rest or rest[0].name not in ("on", "using"):
        return None  # the columns have other names, or its condition is not where it should be
    later = next((n for n, token in enumerate(rest) if token.name in _NEXT or token.text == ","), len(rest))
    return None if _speaks_of(rest[later:], names | _FILE_COLUMNS, anywhere=True) else names


def _speaks_of(found: Sequence[Token], names: frozenset[str], *, anywhere: bool = False) -> bool:
    """Whether one of these names stands there, and, but for ``anywhere``, not as a column of something else."""
    return any(
        token.kind in (Kind.WORD, Kind.QUOTED)
        and token.name in names
        and (anywhere or at == 0 or found[at - 1].text != ".")
        for at, token in enumerate(found)
    )


def _is(token: Token, name: str) -> bool:
    return token.kind in (Kind.WORD, Kind.QUOTED) and token.name == name
