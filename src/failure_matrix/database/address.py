"""Connections that make sessions alike on every server, and words about them that give no password away."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, quote_plus

import psycopg
from psycopg.conninfo import conninfo_to_dict

from failure_matrix.catalogue.findings import CouldNot

SECRET = ("password", "sslpassword")
# PostgreSQL's own defaults, in force whatever the server, the database or the role has set
OPTIONS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO,MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "search_path": '"$user",public',
    "default_transaction_isolation": "read\\ committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


def parameters(dsn: str, name: str) -> dict[str, str]:
    """Read a DSN, key=value or URL; connections made from the result are called ``name``.

    Raises ``CouldNot``, without a word of the DSN: what libpq says of one that it cannot read may quote the password.
    """
    try:
        found = {key: str(value) for key, value in conninfo_to_dict(dsn).items()}
    except (psycopg.ProgrammingError, UnicodeError):
        raise _unreadable() from None
    if any("@" in found.get(key, "") for key in ("host", "hostaddr", "port", "dbname")):
        raise _unreadable()
    if not all(port.isdigit() for port in found.get("port", "").split(",") if port):
        raise _unreadable()
    return {"connect_timeout": "10"} | found | {"application_name": name}


def _unreadable() -> CouldNot:
    return CouldNot(
        "read --dsn (it is not shown, as it may hold a password)",
        "expected 'host=… port=5432 user=… dbname=…' or postgresql://user:password@host:5432/dbname",
        "percent-encode / : @ ? # % in the parts of a URL.",
    )


def settled(found: Mapping[str, str]) -> dict[str, str]:
    """Add to the parameters of a connection the settings that make sessions alike on every server."""
    options = " ".join(f"-c {name}={value}" for name, value in OPTIONS.items())
    return {**found, "client_encoding": "UTF8", "options": f"{options} {found.get('options', '')}".strip()}


def spoken(found: Mapping[str, str]) -> str:
    """Name the server: host and port as given."""
    host = found.get("host") or found.get("hostaddr") or "the local socket"
    return f"'{host}' port {found.get('port', '5432')}"


def told(exc: psycopg.Error, found: Mapping[str, str]) -> str:
    """Tell what the server said, severity, SQLSTATE and primary message; else what libpq said, passwords struck out."""
    if exc.diag.sqlstate is not None:
        text = f"{exc.diag.severity_nonlocalized} {exc.diag.sqlstate}: {exc.diag.message_primary}"
    else:
        text = "; ".join(line.strip() for line in str(exc).splitlines() if line.strip())
    for secret in filter(None, (found.get(key) for key in SECRET)):
        for form in (secret, quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(form, "***")
    return text
