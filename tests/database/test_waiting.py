"""Who waits for whom: the rule on its own, and as the server tells it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import pytest

from failure_matrix.database.answers import Answer
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.database.waiting import Blockers, Observer, Settled, settle, waits_for

PREPARED, OTHER = 0, 99  # a prepared transaction; a backend that is none of ours


def told(
    blocked: Mapping[int, Collection[int]], snapshots: Mapping[int, Collection[int]] | None = None
) -> dict[int, Blockers]:
    return {
        pid: Blockers(lock=frozenset(by), snapshot=frozenset((snapshots or {}).get(pid, ())))
        for pid, by in blocked.items()
    }


@pytest.mark.parametrize(
    ("blocked", "idle", "waits"),
    [
        ({1: []}, [2], None),  # it runs
        ({1: [2]}, [2], {2}),  # for an idle session
        ({1: [2], 2: []}, [3], None),  # its blocker runs, and may be done at any moment
        ({1: [2], 2: [3]}, [3], {2}),  # its blocker waits itself
        ({1: [2, 3]}, [2, 3], {2, 3}),
        ({1: [2, 3], 2: []}, [3], None),  # one of two still runs
        ({1: [2], 2: [1]}, [], None),  # a deadlock, which the server will resolve
        ({1: [2], 2: [3], 3: [2]}, [], None),  # behind a deadlock
        ({1: [2], 2: [3], 3: [1]}, [], None),
        ({1: [2, 3], 2: [1]}, [3], None),  # in a deadlock, and behind an idle session too
        ({1: [OTHER]}, [2], None),  # autovacuum, say: not waiting for us
        ({1: [2, OTHER]}, [2], {2}),
        ({1: [2], 2: [OTHER]}, [], None),
        ({1: [PREPARED]}, [], {PREPARED}),
        ({1: [2], 2: [PREPARED]}, [], {2}),
        ({1: [1]}, [], None),
    ],
)
def test_a_session_waits_when_every_chain_ends_at_an_idle_one(
    blocked: dict[int, list[int]], idle: list[int], waits: set[int] | None
) -> None:
    assert waits_for(1, told(blocked), idle) == (None if waits is None else frozenset(waits))


@pytest.mark.parametrize(
    ("snapshot", "others", "idle", "waits"),
    [
        ([2], {}, [2], {2}),
        ([2], {2: []}, [], {2}),  # also while it runs: it holds its snapshot back until it ends
        ([OTHER], {}, [2], None),  # a serializable transaction in another database
        ([2, OTHER], {}, [2], {2}),
    ],
)
def test_a_safe_snapshot_is_waited_for(
    snapshot: list[int], others: dict[int, list[int]], idle: list[int], waits: set[int] | None
) -> None:
    blockers = told({1: [], **others}, {1: snapshot})
    assert waits_for(1, blockers, idle) == (None if waits is None else frozenset(waits))


def test_who_waits_behind_a_safe_snapshot_waits() -> None:
    blockers = told({1: [2], 2: []}, {2: [3]})
    assert waits_for(1, blockers, [3]) == frozenset({2})


class Stage:
    """Sessions on one database, with an observer; and a backend that is none of ours."""

    def __init__(self, connect: Callable[[str], Connection]) -> None:
        self.observer = Observer(connect("observer"))
        self.sessions = {name: connect(name) for name in "ABC"}
        self.other = connect("other")
        self.answers: list[tuple[str, Answer]] = []

    def send(self, name: str, text: str) -> None:
        self.sessions[name].send(text)

    def settle(self, limit: float = 10, until: Collection[str] = ()) -> Settled:
        def proceed(name: str, answer: Answer) -> None:
            self.answers.append((name, answer))

        return settle(self.observer, self.sessions, proceed, limit=limit, until=until)

    def run(self, name: str, text: str) -> Settled:
        self.send(name, text)
        return self.settle()

    @property
    def answered(self) -> list[str]:
        return [name for name, _ in self.answers]


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[str]:
    name = server.create_database()
    yield name
    server.drop_database(name)


@pytest.fixture
def stage(server: Server, database: str) -> Iterator[Stage]:
    made: list[Connection] = []

    def connect(name: str) -> Connection:
        made.append(Connection(server.conninfo(database), name))
        return made[-1]

    yield Stage(connect)
    for each in made:
        each.close()


LOCK, UNLOCK = "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"


def test_an_answer_is_not_waited_for_in_vain(stage: Stage) -> None:
    assert stage.run("A", "SELECT 1").waiting == {}
    assert stage.answered == ["A"]


def test_waiting_and_release(stage: Stage) -> None:
    stage.run("A", LOCK)
    assert stage.run("B", LOCK).waiting == {"B": ("A",)}
    assert stage.run("C", LOCK).waiting == {"B": ("A",), "C": ("A", "B")}
    assert stage.run("A", UNLOCK).waiting == {"C": ("B",)}
    assert stage.answered[0] == "A"
    assert sorted(stage.answered[1:]) == ["A", "B"]  # whom it sets free may be the first to answer
    assert stage.run("B", UNLOCK).waiting == {}


def test_sleep_is_not_waiting(stage: Stage) -> None:
    settled = stage.run("A", "SELECT pg_sleep(0.05)")
    assert settled == Settled(waiting={})
    assert stage.answered == ["A"]


def test_another_backend_is_not_ours_to_wait_for(stage: Stage) -> None:
    """Past the limit it is cancelled, as anything that runs."""
    stage.other.query(LOCK)
    stage.send("A", LOCK)
    settled = stage.settle(limit=0.1)
    assert settled == Settled(waiting={}, cancelled=frozenset({"A"}))
    assert stage.answers[0][1].error is not None


def test_who_waits_for_us_may_wait_for_ever(stage: Stage) -> None:
    stage.run("A", LOCK)
    stage.send("B", LOCK)
    settled = stage.settle(limit=0.01)
    assert settled == Settled(waiting={"B": ("A",)})


def test_an_answer_that_is_on_its_way_is_waited_for(stage: Stage) -> None:
    stage.run("A", LOCK)
    stage.run("B", f"SET lock_timeout = '100ms'; {LOCK}")
    assert stage.answered == ["A"]
    assert stage.settle(until=["B"]).waiting == {}
    assert stage.answered == ["A", "B"]
    stage.send("B", f"SET lock_timeout = 0; {LOCK}")
    assert stage.settle(limit=0.1, until=["B"]).waiting == {"B": ("A",)}  # nothing was on its way


def test_a_prepared_transaction_is_waited_for(stage: Stage) -> None:
    stage.run("A", "CREATE TABLE IF NOT EXISTS kept (a integer); TRUNCATE kept; INSERT INTO kept VALUES (1)")
    stage.run("A", "BEGIN; UPDATE kept SET a = 2; PREPARE TRANSACTION 'kept'")
    assert stage.run("B", "UPDATE kept SET a = 3").waiting == {"B": ("a prepared transaction",)}
    assert stage.run("A", "ROLLBACK PREPARED 'kept'").waiting == {}


def test_what_catches_a_cancel_is_ended(stage: Stage) -> None:
    stage.send(
        "A",
        "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$",
    )
    assert stage.settle(limit=0.1).cancelled == {"A"}
    ((_, answer),) = stage.answers
    assert answer.lost
    assert answer.error is not None
    assert answer.error.sqlstate == "57P01"


def test_an_answer_may_send_its_session_on(stage: Stage) -> None:
    texts = iter(["SELECT 2", LOCK, "SELECT 4"])
    stage.sessions["B"].query(LOCK)
    seen: list[Answer] = []

    def proceed(name: str, answer: Answer) -> None:
        seen.append(answer)
        if (text := next(texts, None)) is not None:
            stage.send(name, text)

    stage.send("A", "SELECT 1")
    assert settle(stage.observer, stage.sessions, proceed, limit=10).waiting == {"A": ("B",)}
    assert len(seen) == 2
    stage.send("B", UNLOCK)
    assert settle(stage.observer, stage.sessions, proceed, limit=10).waiting == {}


@pytest.mark.parametrize("number", range(5))
def test_a_deadlock_is_left_to_the_server(stage: Stage, number: int) -> None:
    stage.run("A", f"SET deadlock_timeout = '20s'; SELECT pg_advisory_lock(1{number})")
    stage.run("B", f"SET deadlock_timeout = '1ms'; SELECT pg_advisory_lock(2{number})")
    assert stage.run("A", f"SELECT pg_advisory_lock(2{number})").waiting == {"A": ("B",)}
    stage.answers.clear()
    settled = stage.run("B", f"SELECT pg_advisory_lock(1{number})")
    assert settled.waiting == {"A": ("B",)}  # a session's lock outlives its statement
    ((name, answer),) = stage.answers
    assert name == "B"
    assert answer.error is not None
    assert answer.error.sqlstate == "40P01"
