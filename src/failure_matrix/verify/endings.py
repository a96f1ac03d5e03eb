"""Where transactions end, and parts of them, as the server's command tags tell it.

The status of a connection alone does not: after COMMIT AND CHAIN a transaction is open as before. Names of
savepoints and of prepared transactions are in no tag; they are read from the statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from failure_matrix.catalogue.sql import Kind, Token, significant
from failure_matrix.database.answers import Result
from failure_matrix.evidence.schema import split_statements


class End(StrEnum):
    """By the server's tag, but for the last: its tag is ROLLBACK too."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    PREPARE = "PREPARE TRANSACTION"
    COMMIT_PREPARED = "COMMIT PREPARED"
    ROLLBACK_PREPARED = "ROLLBACK PREPARED"
    SAVEPOINT = "SAVEPOINT"
    ROLLBACK_TO = "ROLLBACK TO"


_TAGS = frozenset(end.value for end in End)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """One of them. ``name`` is that of the savepoint or of the prepared transaction, None where it can't be told."""

    end: End
    name: str | None = None


def endings(results: Sequence[Result], text: str) -> Iterator[Ending]:
    """What these results of a script ended, in order."""
    found = [result.tag for result in results]
    if _TAGS.isdisjoint(found):
        return
    statements = _statements(text)
    for number, tag in enumerate(found):
        if tag in _TAGS:
            words = statements[number] if number < len(statements) else ()
            end = End(tag)
            if end == End.ROLLBACK and any(word.text.upper() == "TO" for word in words):
                end = End.ROLLBACK_TO
            yield Ending(end=end, name=_last_name(words))


@lru_cache(maxsize=1024)
def _statements(text: str) -> tuple[tuple[Token, ...], ...]:
    return tuple(significant(statement, "none") for statement in split_statements(text))


def _last_name(words: Sequence[Token]) -> str | None:
    """The name that these statements end with: an identifier, or a string for prepared transactions."""
    last = next((word for word in reversed(words) if word.text != ";"), None)
    if last is None:
        return None
    if last.kind is Kind.STRING:
        return last.text.strip("'").replace("''", "'")
    return last.name if last.kind in (Kind.WORD, Kind.QUOTED) else None
