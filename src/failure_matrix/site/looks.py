"""What a person must look at before a query can tell: files that the database does not hold, a logical clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from failure_matrix.catalogue.model import Catalogue, Sql, Subject
from failure_matrix.catalogue.sql import Kind, Token, parameters, significant

CLOCK = "now"

_FILE_COLUMNS = frozenset(("name", "bytes", "sha256", "modified"))
_ENDS_FROM = frozenset(
    ("select", "where", "on", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "set")
)
_NO_ALIAS = frozenset(("on", "using", "where", "join", "left", "right", "full", "inner", "cross", "natural"))


def of_predicate(catalogue: Catalogue, subject: Subject, when: Sql) -> tuple[str, ...]:
    """What must be looked at before it can be told whether a row is in the state.

    Files that only stand beside the row do not matter to a state that says nothing about them.
    """
    relation = significant(subject.from_.text, subject.from_.params)
    needed = []
    for store in stores(catalogue, [subject.from_, when]):
        names, beside = _names(relation, store)
        if not beside or _speaks_of(when, names | _FILE_COLUMNS):
            needed.append(store)
    return _told(catalogue, [when], needed)


def of_query(catalogue: Catalogue, sql: Sql) -> tuple[str, ...]:
    """What must be looked at before a query's answer means anything."""
    return _told(catalogue, [sql], stores(catalogue, [sql]))


def stores(catalogue: Catalogue, sqls: Sequence[Sql]) -> list[str]:
    """The stores that SQL reads, be it a relation or a condition on one; a column of that name is none."""
    named = frozenset(name for sql in sqls for name in _relations(significant(sql.text, sql.params)))
    return [store for store in catalogue.stores if store in named]


def _relations(found: Sequence[Token]) -> Iterator[str]:
    """The names that stand where a relation does, or before the point of a column."""
    listing = [True]  # for each open parenthesis: relations are being listed; a relation alone is one
    for at, token in enumerate(found):
        if token.text == "(":
            listing.append(False)
        elif token.text == ")" and len(listing) > 1:
            listing.pop()
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            continue
        before, after = (found[n].text if 0 <= n < len(found) else "" for n in (at - 1, at + 1))
        if token.name in ("from", "join"):
            listing[-1] = True
        elif token.name in _ENDS_FROM:
            listing[-1] = False
        elif before != "." and (after == "." or listing[-1]):
            yield token.name


def _told(catalogue: Catalogue, sqls: Sequence[Sql], needed: Sequence[str]) -> tuple[str, ...]:
    timed = any(CLOCK in parameters(sql) for sql in sqls) and catalogue.settings.clock == "logical"
    return (*(["the clock"] if timed else []), *map(files, needed))


def files(store: str) -> str:
    """The files of a store, in words."""
    return f"the files of {store}"


def _names(relation: Sequence[Token], store: str) -> tuple[frozenset[str], bool]:
    """The names that a store goes by in a relation, and whether it is only joined to its left, so takes no row away."""
    names, beside = {store}, True
    for at, token in enumerate(relation):
        qualified = any(each.text == "." for each in relation[max(at - 1, 0) : at + 2])
        if token.kind not in (Kind.WORD, Kind.QUOTED) or token.name != store or qualified:
            continue
        words = [each.name for each in relation[:at][-3:] if each.kind is Kind.WORD]
        beside = beside and (words[-2:] == ["left", "join"] or words[-3:] == ["left", "outer", "join"])
        after = [each for each in relation[at + 1 : at + 3] if each.kind in (Kind.WORD, Kind.QUOTED)]
        if after and after[0].name == "as":
            after = after[1:]
        if after and after[0].name not in _NO_ALIAS:
            names.add(after[0].name)
    return frozenset(names), beside


def _speaks_of(when: Sql, names: frozenset[str]) -> bool:
    """Whether a predicate has one of these names, and not as a column of something else."""
    found = significant(when.text, when.params)
    return any(
        token.kind in (Kind.WORD, Kind.QUOTED) and token.name in names and (at == 0 or found[at - 1].text != ".")
        for at, token in enumerate(found)
    )
