"""How long it takes to see that a step waits, from sending it."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from benchmarks.table import Measured
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.database.waiting import Observer, settle

TIMES = 300
POLL = 10.0  # ms; how often isolationtester looks


def measure(server: Server) -> Measured:
    """The median of many waits for one row lock."""
    name = server.create_database()
    connections = {each: Connection(server.conninfo(name), each) for each in ("observer", "holder", "waiter")}
    holder, waiter = connections["holder"], connections["waiter"]
    holder.query("CREATE TABLE job (id integer); INSERT INTO job VALUES (1)")
    observer = Observer(connections["observer"])
    sessions = {"holder": holder, "waiter": waiter}
    seen = []
    for _ in range(TIMES):
        holder.query("BEGIN")
        holder.query("SELECT FROM job FOR UPDATE")
        began = perf_counter()
        waiter.send("SELECT FROM job FOR UPDATE")
        settled = settle(observer, sessions, lambda *_: None, limit=10)
        seen.append((perf_counter() - began) * 1000)
        assert settled.waiting == {"waiter": ("holder",)}
        holder.query("COMMIT")
        settle(observer, sessions, lambda *_: None, limit=10)
    for connection in connections.values():
        connection.close()
    server.drop_database(name)
    took = median(seen)
    return Measured(
        work="seeing that a step waits, median",
        against="isolationtester's poll",
        ours=took,
        theirs=POLL,
        unit="ms",
        goal="1 ms",
        met=took <= 1,
    )
