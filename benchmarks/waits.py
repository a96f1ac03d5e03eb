"""How long it takes to see that a step waits, from sending it; and how long isolationtester takes."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.isolation import IsolationTester
from benchmarks.table import Measured, alternate
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.database.waiting import Observer, settle

TIMES = 300
WAITS = "take wait give"  # the second step waits for the first session, and the third sets it free
NEVER = "take give wait"  # the same steps, and none waits
SPEC = """
setup {{ CREATE TABLE job (id integer); INSERT INTO job VALUES (1); }}
teardown {{ DROP TABLE job; }}
session holder
step take {{ BEGIN; SELECT FROM job FOR UPDATE; }}
step give {{ COMMIT; }}
session waiter
step wait {{ SELECT FROM job FOR UPDATE; }}
{permutations}
"""


def measure(server: Server, prefix: Path, rounds: int) -> Measured:
    """The median of many waits for one row lock."""
    took = median(_seen(server))
    return Measured(
        work="seeing that a step waits",
        against="isolationtester: an order in which one step waits, less one in which none does",
        ours=took,
        theirs=_theirs(server, prefix, rounds),
        unit="ms",
        times=rounds,
        goal="1 ms",
        met=took <= 1,
    )


def _seen(server: Server) -> list[float]:
    """Milliseconds from sending a step until it is seen to wait."""
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
    return seen


def _theirs(server: Server, prefix: Path, rounds: int) -> float:
    """Milliseconds that one wait costs isolationtester."""
    texts = [SPEC.format(permutations=f"permutation {order}\n" * TIMES) for order in (WAITS, NEVER)]
    nothing = Catalogue.model_validate({"catalogue": {"title": "Nothing"}})
    with IsolationTester(nothing, server, prefix, tables_stay=False) as tester:
        waiting, never = alternate(rounds, lambda: tester.run(texts[0]), lambda: tester.run(texts[1])).medians
    return (waiting - never) / TIMES * 1000
