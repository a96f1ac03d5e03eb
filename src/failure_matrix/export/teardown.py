"""What undoes a schema: a DROP for each CREATE, the last first."""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.catalogue.model import Sql
from failure_matrix.catalogue.sql import Kind, Token, significant
from failure_matrix.evidence.schema import split_statements
from failure_matrix.export.inline import CannotExport, braceless

_DROPPED = {
    "table": "TABLE", "view": "VIEW", "sequence": "SEQUENCE", "type": "TYPE", "domain": "DOMAIN", "schema": "SCHEMA",
    "function": "FUNCTION", "procedure": "PROCEDURE", "aggregate": "AGGREGATE", "extension": "EXTENSION",
    "materialized view": "MATERIALIZED VIEW", "collation": "COLLATION",
}  # fmt: skip
_CALLED = frozenset(("function", "procedure", "aggregate"))
_GO_WITH_THEIRS = frozenset(("index", "trigger", "policy", "rule", "unique", "constraint", "statistics"))
_HARMLESS = frozenset(
    ("insert", "update", "delete", "alter", "comment", "grant", "revoke", "set", "select", "begin", "commit", "analyze")
)
_BETWEEN = frozenset(
    (
        "or",
        "replace",
        "temp",
        "temporary",
        "local",
        "global",
        "unlogged",
        "recursive",
        "if",
        "not",
        "exists",
        "constraint",
    )
)


def undo(schema: Sequence[Sql]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The statements that drop what the schema creates, and the beginnings of those that nothing here can undo."""
    drops: list[str] = []
    lost: list[str] = []
    for item in schema:
        for statement in split_statements(item.text):
            words = [token for token in significant(statement, "none") if token.text != ";"]
            try:
                made = _made(words)
            except CannotExport:
                made = None
            if made is None:
                lost.append(" ".join(token.text for token in words[:4]))
            elif made:
                drops.append(made)
    return tuple(reversed(drops)), tuple(lost)


def _made(words: Sequence[Token]) -> str | None:
    """The DROP for one statement; '' where none is needed, None where it is not known."""
    if words[0].kind is not Kind.WORD or words[0].name in _HARMLESS:
        return ""
    if words[0].name != "create":
        return None
    at = 1
    while at < len(words) and words[at].name in _BETWEEN:
        at += 1
    kind = words[at].name if at < len(words) else ""
    if kind == "materialized":
        at, kind = at + 1, "materialized view"
    if kind in _GO_WITH_THEIRS:
        return ""
    if kind not in _DROPPED:
        return None
    at += 1
    while at < len(words) and words[at].name in _BETWEEN:
        at += 1
    name, at = _name(words, at)
    arguments = _arguments(words, at) if kind in _CALLED else ""
    return f"DROP {_DROPPED[kind]} IF EXISTS {name}{arguments} CASCADE"


def _name(words: Sequence[Token], at: int) -> tuple[str, int]:
    parts = [braceless(words[at])]
    while at + 2 < len(words) and words[at + 1].text == ".":
        at += 2
        parts.append(braceless(words[at]))
    return ".".join(parts), at + 1


def _arguments(words: Sequence[Token], at: int) -> str:
    """The list of arguments as DROP takes it: without defaults."""
    depth, kept, pieces = 0, True, []
    for token in words[at:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            break
        if depth == 1 and (token.text == "=" or token.name == "default"):
            kept = False
        elif depth == 1 and token.text == ",":
            kept = True
        if kept:
            pieces.append(braceless(token))
    return " ".join(pieces) + ")" if pieces else "()"
