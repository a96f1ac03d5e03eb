"""Our runner, with a classification after every step, against PostgreSQL's isolationtester, which classifies nothing.

Both run the same orders of the same scenarios on the same server: those that turn out possible. Impossible ones
make isolationtester wait until its limit, so they are left out of its files; ours finds them as it goes.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import Verdict
from failure_matrix.export.spec import spec
from failure_matrix.verify import prepare
from failure_matrix.verify.entry import Entry
from failure_matrix.verify.ground import Ground, laid
from failure_matrix.verify.lane import lanes
from failure_matrix.verify.order import End
from failure_matrix.verify.orders import Table
from failure_matrix.verify.probing import ready_probe
from failure_matrix.verify.script import script
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.verification import Verification

TESTER = Path("lib/pgxs/src/test/isolation/isolationtester")  # below an installation's prefix
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
ALL = 10**6  # orders; more than any scenario here has
LIMIT = 20  # seconds after which isolationtester cancels a step


class Disagreement(Exception):
    """The two saw different things, so that their times say nothing. ``str()`` says what."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """One order as it went."""

    steps: tuple[int, ...]
    waited: frozenset[int] = frozenset()
    freed: frozenset[tuple[int, int]] = frozenset()  # step that waited, step that set it free
    deadlock: bool = False

    @property
    def comparable(self) -> Order:
        """Which of two sessions a deadlock ends depends on who looked for it first, and so does who waited."""
        return replace(self, waited=frozenset(), freed=frozenset()) if self.deadlock else self


@contextmanager
def _ground(catalogue: Catalogue, server: Server) -> Iterator[tuple[Ground, Stores]]:
    template = prepare.make_template(catalogue, server)
    probe = ready_probe(catalogue, server.conninfo(template))
    with laid(server, template, probe) as ground:
        yield ground, Stores(server.directory / "stores", catalogue.stores)
    server.drop_database(template)


class Runner:
    """Ours, on databases that are there, as isolationtester's is."""

    def __init__(self, catalogue: Catalogue, server: Server, *, jobs: int) -> None:
        self._catalogue = catalogue
        self._server = server
        self._jobs = jobs
        self._open = ExitStack()

    def __enter__(self) -> Runner:
        catalogue, server = self._catalogue, self._server
        template = prepare.make_template(catalogue, server)
        self._open.callback(server.drop_database, template)
        probe = ready_probe(catalogue, server.conninfo(template))
        fingerprints = Fingerprints(catalogue, server.major)
        laid = lanes(catalogue, server, template, probe, fingerprints, STARTED, count=self._jobs)
        self._lanes = self._open.enter_context(laid)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def run(self, ids: Sequence[str]) -> int:
        """Do what ``verify`` does for these scenarios, as listed and in all orders; how many orders ran."""
        verification = Verification(self._catalogue, self._lanes, lambda _: None)
        records = verification.in_all_orders(verification.listed(ids, None))
        for record in records:
            if record.verdict is not Verdict.VERIFIED:
                raise Disagreement(f"{record.id} is {record.verdict}: {record.because}")
        return sum(record.orders.ran for record in records)


def possible(catalogue: Catalogue, server: Server, id: str) -> list[Order]:
    """The orders of a scenario that are possible, the listed one included, and how each went."""
    with _ground(catalogue, server) as (ground, stores):
        table = Table(catalogue, script(catalogue, id), ground, stores, STARTED)
        orders = [table.player.play(table.listed), *table.outcomes(ALL)]
    return [_order(outcome.entries) for outcome in orders if outcome.end is End.HELD]


def _order(entries: Sequence[Entry]) -> Order:
    freed = {(entry.numbered.number, entry.released_by) for entry in entries if entry.released_by is not None}
    errors = {entry.answer.error.sqlstate for entry in entries if entry.answer and entry.answer.error}
    return Order(
        steps=tuple(entry.numbered.number for entry in entries),
        waited=frozenset(entry.numbered.number for entry in entries if entry.waits),
        freed=frozenset(freed),
        deadlock="40P01" in errors,
    )


def as_spec(catalogue: Catalogue, id: str, orders: Sequence[Order], *, tables_stay: bool) -> str:
    """The scenario for isolationtester; with ``tables_stay`` its tables are there already, and only emptied."""
    if not tables_stay:
        return spec(catalogue, id, orders=[order.steps for order in orders]).text
    without = catalogue.model_copy(update={"settings": catalogue.settings.model_copy(update={"schema_": ()})})
    text = spec(without, id, orders=[order.steps for order in orders]).text
    deletes = ";\n".join(f"DELETE FROM {subject.from_.text}" for subject in catalogue.subjects.values())
    return text.replace("\nsession ", f"\nteardown {{\n{deletes}\n}}\n\nsession ", 1)


class IsolationTester:
    """isolationtester on a database of its own."""

    def __init__(self, catalogue: Catalogue, server: Server, prefix: Path, *, tables_stay: bool) -> None:
        self._program = prefix / TESTER
        self._server = server
        self._database = prepare.make_template(catalogue, server) if tables_stay else server.create_database()

    def run(self, text: str) -> str:
        """Run one ``.spec``; what it printed. Raises Disagreement where it ended badly."""
        done = subprocess.run(
            [self._program, self._server.conninfo(self._database)],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PG_TEST_TIMEOUT_DEFAULT": str(LIMIT)},
        )
        if done.returncode:
            raise Disagreement(f"isolationtester ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def __enter__(self) -> IsolationTester:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.drop_database(self._database)


_PERMUTATION = re.compile(r"^starting permutation: (.*)$", re.MULTILINE)
_STEP = re.compile(r"^step s(\d+)_\w+: ((?:(?!^step |^starting ).*\n?)*)", re.MULTILINE)


def printed(output: str) -> Iterator[Order]:
    """How each order went, as isolationtester tells it."""
    parts = _PERMUTATION.split(output)[1:]
    for names, told in zip(parts[::2], parts[1::2], strict=True):
        waited, freed, last = set(), set(), 0
        for number, what in _STEP.findall(told):
            if what.startswith("<... completed>"):
                freed.add((int(number), last))
                continue
            last = int(number)
            if "<waiting ...>" in what:
                waited.add(last)
        yield Order(
            steps=tuple(int(name[1:].split("_")[0]) for name in names.split()),
            waited=frozenset(waited),
            freed=frozenset(freed),
            deadlock="deadlock detected" in told,
        )


def compare(id: str, ours: Sequence[Order], theirs: Sequence[Order]) -> None:
    """Raise Disagreement unless the same steps waited and were set free at the same steps."""
    if len(ours) != len(theirs):
        raise Disagreement(f"{id}: {len(ours)} orders against {len(theirs)}")
    for mine, other in zip(ours, theirs, strict=True):
        if mine.comparable != other.comparable:
            raise Disagreement(f"{id}: we saw {mine}, isolationtester {other}")
