"""What ``:now`` is: where the clock starts, and what a step that moves it makes of it."""

from __future__ import annotations

import re
from datetime import datetime

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.answers import Value
from failure_matrix.database.connection import Connection

_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)


class Backwards(Exception):
    """A step that would set the clock back."""


def start(catalogue: Catalogue) -> Value:
    """Give the time before any step: 0, or the first ``at`` of a catalogue whose times are no whole numbers."""
    times = (read(step.at) for scenario in catalogue.scenarios.values() for step in scenario.steps if step.at)
    first = next(times, 0)
    return first if isinstance(first, str) and "$" not in first else 0


def read(written: str) -> int | str:
    """Read a time as the catalogue writes it: a whole number, or text that PostgreSQL reads."""
    return int(written) if _WHOLE.fullmatch(written) else written


def moved(now: Value, written: str) -> int | str:
    """Give the time that a step sets. Raises Backwards, as far as the two can be compared."""
    then = read(written)
    if (isinstance(now, int) and isinstance(then, int) and then < now) or _earlier(str(then), str(now)):
        raise Backwards(f"the clock is at {now}, and does not go back to {then}")
    return then


def _earlier(one: str, other: str) -> bool:
    try:
        return datetime.fromisoformat(one) < datetime.fromisoformat(other)
    except (ValueError, TypeError):  # other forms, or one of the two has no zone: PostgreSQL knows, we don't
        return False


def wall(connection: Connection) -> str:
    """Ask the server for its own time. Raises ServerError."""
    return connection.query("SELECT clock_timestamp()::text").rows[0][0] or ""


def sample(catalogue: Catalogue) -> Value:
    """Give a time that lets PostgreSQL tell the type of ``:now``."""
    return "" if catalogue.settings.clock == "wall" else start(catalogue)
