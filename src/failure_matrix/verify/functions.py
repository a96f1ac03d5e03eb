"""Functions of the schema whose bodies hold guards."""

from __future__ import annotations

from failure_matrix.catalogue.guards import body_of
from failure_matrix.database.connection import Connection

# By name, with or without its schema; those of the server itself hold no guards of ours.
_FUNCTIONS = """
SELECT pg_get_functiondef(oid) FROM pg_proc
 WHERE oid >= 16384 AND prokind IN ('f', 'p')
   AND $1::text IN (proname::text, format('%s.%s', pronamespace::regnamespace, proname))
 ORDER BY oid
"""


def definitions(connection: Connection, name: str) -> list[tuple[str, int, str]]:
    """For each function of a name: what creates it anew, where its body begins in that, and the body.

    One whose body is no text of its own, as that of BEGIN ATOMIC, is left out.
    """
    found = []
    for (definition,) in connection.query(_FUNCTIONS, [name]).rows:
        body = body_of(definition or "")
        if definition is not None and body is not None:
            found.append((definition, *body))
    return found
