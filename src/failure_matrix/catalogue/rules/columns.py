"""The columns that a SELECT returns, as far as its text alone tells."""

from __future__ import annotations

from failure_matrix.catalogue.sql import Kind, Token, significant

_CLAUSES = frozenset(
    ("from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union", "except")
)


def selected(text: str) -> set[str] | None:
    """Give the names of the columns that a plain SELECT returns; None where the text alone does not tell."""
    found = significant(text)
    if not found or found[0].name != "select":
        return None
    columns: set[str] = set()
    item: list[Token] = []
    depth = 0
    for token in (*found[1:], None):
        if token is not None and token.kind is Kind.MARK:
            depth += (token.text in "([") - (token.text in ")]")
        ends = token is None or (depth == 0 and token.kind is Kind.WORD and token.name in _CLAUSES)
        if ends or (token is not None and depth == 0 and token.text == ","):
            name = _column(item)
            if name is None:
                return None
            columns.add(name)
            if ends:
                break
            item = []
        elif token is not None:
            item.append(token)
    return columns


def _column(item: list[Token]) -> str | None:
    """Give the name of one column: behind AS, or of a plain column; None for what PostgreSQL names."""
    if not item or item[-1].kind not in (Kind.WORD, Kind.QUOTED):
        return None
    named = len(item) > 2 and item[-2].kind is Kind.WORD and item[-2].name == "as"
    plain = all(token.text == "." if number % 2 else token.kind in _NAMES for number, token in enumerate(item))
    return item[-1].name if named or plain else None


_NAMES = (Kind.WORD, Kind.QUOTED)
