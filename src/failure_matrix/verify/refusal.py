"""What the answer to a refused action looks like: the server's answer held against ``refusal.looks``."""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.catalogue.model import Action, Looks, Row
from failure_matrix.database.answers import Result, ServerError
from failure_matrix.verify.values import as_text


def looks_refused(action: Action, answer: Result | None, error: ServerError | None) -> tuple[Looks, ...]:
    """The forms of a refusal that this answer has."""
    return tuple(looks for looks in action.refusal.looks if _matches(looks, answer, error))


def _matches(looks: Looks, answer: Result | None, error: ServerError | None) -> bool:
    if looks.error is not None:
        if error is None or error.sqlstate != looks.error.sqlstate:
            return False
        return looks.error.constraint in (None, error.constraint)
    if error is not None:
        return False
    rows = answer.affected or 0 if answer is not None else 0
    if looks.rows is not None and rows != looks.rows:
        return False
    if looks.silent and not rows:
        return False
    return looks.returns is None or _returned(looks.returns, answer)


def _returned(expected: Sequence[Row], answer: Result | None) -> bool:
    """Whether it returned just these rows; those with names by their names."""
    if answer is None or len(answer.rows) != len(expected):
        return False
    return all(_row(row, answer.columns) == found for row, found in zip(expected, answer.rows, strict=True))


def _row(row: Row, columns: Sequence[str]) -> tuple[str | None, ...] | None:
    if isinstance(row, tuple):
        return tuple(as_text(value) for value in row)
    if sorted(row) != sorted(columns):
        return None
    return tuple(as_text(row[column]) for column in columns)


def described(action: Action) -> str:
    """What is declared, in words: ``0 rows or error 23505 (job_pkey)``."""
    return " or ".join(map(_described, action.refusal.looks))


def _described(looks: Looks) -> str:
    if looks.error is not None:
        constraint = f" ({looks.error.constraint})" if looks.error.constraint else ""
        return f"error {looks.error.sqlstate}{constraint}"
    if looks.returns is not None:
        return "; ".join(_row_described(row) for row in looks.returns) or "no row"
    if looks.silent:
        return "a row that changes nothing"
    return counted(looks.rows)


def _row_described(row: Row) -> str:
    if isinstance(row, tuple):
        return f"({', '.join(_value(as_text(value)) for value in row)})"
    return f"({', '.join(f'{name} {_value(as_text(value))}' for name, value in row.items())})"


def answered(answer: Result | None, error: ServerError | None) -> str:
    """What the server answered, in words: ``1 row (f null)``."""
    if error is not None:
        return f"error {error.sqlstate}{f' ({error.constraint})' if error.constraint else ''}: {error.message}"
    if answer is None:
        return "nothing"
    if not answer.rows:
        return counted(answer.affected)
    first = dict(zip(answer.columns, answer.rows[0], strict=True))
    return f"{counted(answer.affected)} ({', '.join(f'{column} {_value(text)}' for column, text in first.items())})"


def _value(text: str | None) -> str:
    return "null" if text is None else text


def counted(rows: int | None) -> str:
    return "no row count" if rows is None else "1 row" if rows == 1 else f"{rows} rows"
