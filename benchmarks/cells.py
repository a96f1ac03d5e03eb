"""What a cell of the sweep costs beside its statements alone, sent one after another on a bare connection.

The sweep tries an action once for all cells whose callers bring the same values to the same row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any
from unittest.mock import patch

from psycopg import pq

from benchmarks.table import Measured
from benchmarks.whole import ROOT
from failure_matrix.catalogue.load import load
from failure_matrix.database.answers import Request
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.verify import prepare
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.lane import lanes
from failure_matrix.verify.probing import ready_probe
from failure_matrix.verify.sweep import Sweep
from failure_matrix.verify.verification import Verification

GOAL = 1.5


class _Bare:
    """A connection that sends what the sweep sent, a round trip each, and looks at no answer."""

    def __init__(self, conninfo: str) -> None:
        self._connection = pq.PGconn.connect(conninfo.encode())
        self._prepared: dict[tuple[str, tuple[int, ...]], bytes] = {}

    def send(self, request: Request) -> None:
        if request.prepared is None:
            self._connection.exec_params(request.text.encode(), request.encoded, request.types)
            return
        kind = (request.text, request.types)
        if kind not in self._prepared:
            self._prepared[kind] = f"bare {len(self._prepared)}".encode()
            self._connection.prepare(self._prepared[kind], request.text.encode(), request.types)
        self._connection.exec_prepared(self._prepared[kind], request.encoded)

    def close(self) -> None:
        self._connection.finish()


def measure(server: Server) -> Measured:
    """Every situation of the shipped catalogue: swept, and then its statements again."""
    catalogue = load(ROOT / "matrix")
    template = prepare.make_template(catalogue, server)
    probe = ready_probe(catalogue, server.conninfo(template))
    seconds, sent, tries = {"ours": 0.0, "theirs": 0.0}, list[Request](), 0
    sweep = Sweep(catalogue)
    together, visit = Connection.together, Sweep.visit

    def noting(connection: Connection, *segments: Sequence[Request]) -> Any:
        if connection.name == "sweep":
            sent.extend(request for segment in segments for request in segment)
        return together(connection, *segments)

    def timed(self: Sweep, ground: Ground, *rest: Any) -> None:
        nonlocal tries
        sent.clear()
        began = perf_counter()
        visit(self, ground, *rest)
        seconds["ours"] += perf_counter() - began
        if not sent:
            return
        tries += sum(request.text == "BEGIN" for request in sent)
        database = ground.admin.query("SELECT current_database()").rows[0][0]
        bare = _Bare(server.conninfo(str(database)))
        for round_ in range(2):  # the first warms it up, as the sweep's own connection is
            began = perf_counter()
            for request in sent:
                bare.send(request)
            seconds["theirs"] += (perf_counter() - began) * round_
        bare.close()

    fingerprints, now = Fingerprints(catalogue, server.major), datetime.now(UTC)
    with (
        patch.object(Connection, "together", noting),
        patch.object(Sweep, "visit", timed),
        lanes(catalogue, server, template, probe, fingerprints, now, count=1) as laid,
    ):
        Verification(catalogue, laid, lambda _: None).listed(tuple(catalogue.scenarios), sweep)
    server.drop_database(template)
    cells = sum(tally.tries for tally in sweep.tallies.values())
    ours, theirs = seconds["ours"] / cells * 1000, seconds["theirs"] / tries * 1000
    return Measured(
        work=f"a cell tried in a situation, {cells:,} by {tries:,} tries",
        against="a try's statements on a bare connection",
        ours=ours,
        theirs=theirs,
        unit="ms",
        goal=f"{GOAL:.2f}",
        met=ours / theirs <= GOAL,
    )
