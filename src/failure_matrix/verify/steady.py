"""Whether only a commit can change what the probe finds, so that it need not look again after what committed nothing.

A step that leaves its session's transaction open has changed no committed row. But predicates and invariants may
ask for more than rows: a sequence, a lock, the time, who has locked a row. Then every step counts. So too where
something could commit beside the session: an extension, a program.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from failure_matrix.catalogue.model import Catalogue, Sql
from failure_matrix.catalogue.sql import Kind, Token, identifiers, significant
from failure_matrix.database.classify import Probe
from failure_matrix.database.connection import Connection

# Functions that depend on nothing but their arguments and settings of the observer, which stay as they are.
_AS_GOOD_AS_IMMUTABLE = (
    "jsonb_build_array", "jsonb_build_object", "json_build_array", "json_build_object", "to_jsonb", "to_json",
    "jsonb_to_recordset", "row_to_json", "jsonb_agg", "json_agg", "array_agg", "format", "concat", "concat_ws",
    "to_char",
)  # fmt: skip
_NO_CALLS = frozenset(
    ("in", "exists", "any", "all", "some", "values", "and", "or", "not", "when", "then", "else", "case", "over",
     "filter", "from", "join", "on", "where", "as", "using", "select", "by", "limit", "cast", "coalesce", "nullif",
     "greatest", "least", "lateral", "within", "having", "union", "except", "intersect", "distinct", "is", "between",
     "with", "array", "row", "like", "ilike")
)  # fmt: skip
_TELL_MORE = frozenset(
    ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user", "current_role",
     "current_catalog", "current_schema", "session_user", "system_user", "user", "tablesample",
     "xmin", "xmax", "cmin", "cmax", "ctid")
)  # fmt: skip
_TIMES = frozenset(("now", "today", "tomorrow", "yesterday"))  # texts that are read as a time
_COMMIT_BESIDE = frozenset(("extension", "program", "dblink"))
_REPLACE = frozenset(("create", "alter"))  # what is a table now may be a view then

# False where something is asked for that is neither a row of an own table nor computed from one.
_ASKED = """
SELECT (SELECT coalesce(bool_and(relkind IN ('r', 'p', 'i', 'I', 'c') AND oid >= 16384), true)
          FROM pg_class WHERE relname = ANY ($1::text[]))
   AND (SELECT coalesce(bool_and(provolatile = 'i' AND prolang <> 13), true)
          FROM pg_proc WHERE oid >= 16384 AND proname = ANY ($1::text[]))
   AND (SELECT coalesce(bool_and(coalesce(known.volatile = 'i', false) OR called = ANY ($3::text[])), true)
          FROM unnest($2::text[]) AS called
          LEFT JOIN (SELECT proname, max(provolatile::text) AS volatile FROM pg_proc
                      WHERE proname = ANY ($2::text[]) GROUP BY proname) AS known
            ON known.proname = called)
   AND NOT EXISTS (SELECT FROM pg_operator WHERE oid >= 16384)
   AND NOT EXISTS (SELECT FROM pg_cast WHERE oid >= 16384)
   AND NOT EXISTS (SELECT FROM pg_extension WHERE extname <> 'plpgsql')
   AND NOT EXISTS (SELECT FROM pg_language WHERE lanname NOT IN ('internal', 'c', 'sql', 'plpgsql'))
   AND NOT EXISTS (SELECT FROM pg_proc WHERE oid >= 16384 AND prolang = 13)
"""


def only_commits_tell(catalogue: Catalogue, probe: Probe, connection: Connection) -> bool:
    """Whether the probe finds the same until something commits. When in doubt, not."""
    asked = probe.statement.text
    if catalogue.settings.clock == "wall":
        return False
    if any(_COMMIT_BESIDE & identifiers(sql.text) for sql in catalogue.settings.schema_):
        return False
    if any((_COMMIT_BESIDE | _REPLACE) & identifiers(sql.text) for sql in _ran(catalogue)):
        return False
    words = significant(asked, "none")
    names = identifiers(asked)
    if _TELL_MORE & names or any(token.kind is Kind.STRING and _is_time(token) for token in words):
        return False
    called = {
        token.name
        for token, after in pairwise(words)
        if token.kind in (Kind.WORD, Kind.QUOTED) and after.text == "(" and token.name not in _NO_CALLS
    }
    lists = [_array(sorted(each)) for each in (names, called, _AS_GOOD_AS_IMMUTABLE)]
    return connection.query(_ASKED, lists).rows[0][0] == "t"


def _is_time(token: Token) -> bool:
    return bool(_TIMES & set(token.text.lower().replace("'", " ").split()))


def _array(names: list[str]) -> str:
    escaped = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ",".join(f'"{name}"' for name in escaped) + "}"


def _ran(catalogue: Catalogue) -> Iterator[Sql]:
    """All SQL that may run while scenarios are played."""
    yield from (action.sql for action in catalogue.actions.values() if action.sql is not None)
    yield from (event.sql for event in catalogue.events.values() if event.sql is not None)
    for scenario in catalogue.scenarios.values():
        yield from (step.sql for step in scenario.steps if step.sql is not None)
        if scenario.given.sql is not None:
            yield scenario.given.sql
        yield from (setup.setup for setup in scenario.sessions.values() if setup.setup is not None)
    yield from (setup.setup for setup in catalogue.sessions.values() if setup.setup is not None)
