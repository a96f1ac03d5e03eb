"""One connection: what it sends, what it hears, and how it ends."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.database.answers import Answer, Request, Result, ServerError, Value
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.database.waiting import wait_for_end

Connect = Callable[[str], Connection]


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[str]:
    name = server.create_database()
    yield name
    server.drop_database(name)


@pytest.fixture
def connect(server: Server, database: str) -> Iterator[Connect]:
    made: list[Connection] = []

    def connection(name: str) -> Connection:
        made.append(Connection(server.conninfo(database), name))
        return made[-1]

    yield connection
    for each in made:
        each.close()


def answer_of(connection: Connection, text: str, values: tuple[Value, ...] = ()) -> Answer:
    """Send, and read until the whole answer is there."""
    connection.send(text, values)
    while (answer := connection.receive()) is None:
        select.select([connection.socket], [], [], 10)
    return answer


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        ("x", "text", "x"),
        ("", "text", ""),
        ("5", "text", "5"),
        (5, "integer", "5"),
        (2**31, "bigint", str(2**31)),
        (-(2**31), "integer", str(-(2**31))),
        (True, "boolean", "t"),
        (False, "boolean", "f"),
        (Decimal("1.10"), "text", "1.10"),
        (None, "text", None),
        ("ünïcødé 漢字 '\"\\", "text", "ünïcødé 漢字 '\"\\"),
    ],
)
def test_a_value_is_bound_with_its_type(connect: Connect, value: Value, type: str, text: str | None) -> None:
    result = connect("a").query("SELECT it, pg_typeof(it) FROM (SELECT $1 AS it) AS bound", [value])
    assert result.rows == ((text, type),)


def test_a_result_tells_columns_types_and_counts(connect: Connect) -> None:
    connection = connect("a")
    connection.query("CREATE TEMPORARY TABLE t (a integer, b text)")
    assert connection.query("INSERT INTO t VALUES (1, NULL), (2, '')") == Result(tag="INSERT 0 2", affected=2)
    assert connection.query("SELECT a, b FROM t ORDER BY a") == Result(
        tag="SELECT 2", affected=2, columns=("a", "b"), types=(23, 25), rows=(("1", None), ("2", ""))
    )
    assert connection.query("SELECT FROM t").affected == 2
    assert connection.query("BEGIN; ROLLBACK").affected is None


def test_every_statement_of_a_script_is_answered(connect: Connect) -> None:
    answer = answer_of(connect("a"), "SELECT 1; SELECT 2 WHERE false; BEGIN; ; SELECT 3")
    assert [result.tag for result in answer.results] == ["SELECT 1", "SELECT 0", "BEGIN", "SELECT 1"]
    assert answer.error is None


def test_an_error_tells_what_is_needed_and_no_more(connect: Connect) -> None:
    connection = connect("a")
    connection.query("CREATE TEMPORARY TABLE t (a integer CONSTRAINT only_one UNIQUE)")
    answer = answer_of(connection, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    error = answer.error
    assert error is not None
    assert (error.severity, error.sqlstate, error.constraint) == ("ERROR", "23505", "only_one")
    assert str(error) == 'ERROR 23505: duplicate key value violates unique constraint "only_one"'
    assert [result.tag for result in answer.results] == ["INSERT 0 1"]
    with pytest.raises(ServerError) as caught:
        connection.query("SELECT 1,\n  nothing")
    assert caught.value.position == 13


def test_notices_come_with_the_answer_they_belong_to(connect: Connect) -> None:
    connection = connect("a")
    assert answer_of(connection, "DO $$ BEGIN RAISE NOTICE 'one'; END $$; ROLLBACK").notices == (
        "one",
        "there is no transaction in progress",
    )
    assert answer_of(connection, "SELECT 1").notices == ()


def test_transactions_are_seen(connect: Connect) -> None:
    connection = connect("a")
    seen = []
    for text in ("BEGIN", "SELECT 1/0", "ROLLBACK"):
        answer_of(connection, text)
        seen.append((connection.in_transaction, connection.in_failed_transaction))
    assert seen == [(True, False), (True, True), (False, False)]


def test_copy_neither_hangs_nor_leaves_anything_behind(connect: Connect) -> None:
    connection = connect("a")
    connection.query("CREATE TEMPORARY TABLE t (a text)")
    told = answer_of(connection, "COPY (SELECT repeat('x', 99999) FROM generate_series(1, 9)) TO STDOUT; SELECT 1")
    assert [result.tag for result in told.results] == ["COPY 9", "SELECT 1"]
    refused = answer_of(connection, "COPY t FROM STDIN")
    assert refused.error is not None
    assert refused.error.sqlstate == "57014"
    failed = answer_of(
        connection, "COPY (SELECT repeat('x', 99999), 1 / (3 - g) FROM generate_series(1, 5) AS g) TO STDOUT"
    )
    assert failed.error is not None
    assert failed.error.sqlstate == "22012"
    assert answer_of(connection, "SELECT 2").results[0].rows == (("2",),)


def test_a_question_has_a_limit(connect: Connect) -> None:
    connection = connect("a")
    with pytest.raises(ServerError, match=r"no answer within 0\.05 s"):
        connection.query("SELECT pg_sleep(60)", limit=0.05)
    assert connection.query("SELECT 1").rows == (("1",),)  # it was cancelled, and the connection is as good as before


def test_what_does_not_answer_a_cancel_is_left(connect: Connect) -> None:
    connection = connect("a")
    deaf = "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$"
    with pytest.raises(ServerError, match="no answer"):
        connection.query(deaf, limit=0.05)
    assert connection.lost
    connect("b").query("SELECT pg_terminate_backend($1::int)", [connection.pid])


def test_a_backend_that_is_ended_says_so(connect: Connect) -> None:
    killed, killer = connect("a"), connect("b")
    killed.send("SELECT pg_sleep(60)")
    killer.query("SELECT pg_terminate_backend($1::int)", [killed.pid])
    while (answer := killed.receive()) is None:
        select.select([killed.socket], [], [], 10)
    assert answer.lost
    assert killed.lost
    assert answer.error is not None
    assert (answer.error.severity, answer.error.sqlstate) == ("FATAL", "57P01")


def test_an_idle_backend_that_is_ended_is_waited_for(connect: Connect) -> None:
    killed, killer = connect("a"), connect("b")
    killed.query("SELECT pg_advisory_lock(1)")
    killer.query("SELECT pg_terminate_backend($1::int)", [killed.pid])
    wait_for_end(killed)
    assert killed.lost
    assert killer.query("SELECT pg_try_advisory_lock(1)").rows == (("t",),)


@pytest.mark.parametrize("ask", ["query", "execute", "prepare", "send"])
def test_a_lost_connection_is_an_error_and_no_traceback(connect: Connect, ask: str) -> None:
    killed, killer = connect("a"), connect("b")
    killer.query("SELECT pg_terminate_backend($1::int)", [killed.pid])
    wait_for_end(killed)
    if ask == "send":
        answer = answer_of(killed, "SELECT 1")
        assert answer.lost
        assert not killed.busy
        return
    asked: dict[str, Callable[[], object]] = {
        "query": lambda: killed.query("SELECT 1"),
        "execute": lambda: killed.execute(Request(text="SELECT 1", prepared="one")),
        "prepare": lambda: killed.prepare("one", "SELECT 1"),
    }
    with pytest.raises(ServerError) as caught:
        asked[ask]()
    assert caught.value.sqlstate == "08006"
    assert killed.lost


def test_an_answer_that_is_lost_in_the_middle(connect: Connect) -> None:
    killed, killer = connect("a"), connect("b")
    with pytest.raises(ServerError) as caught:
        killed.query("SELECT pg_terminate_backend(pg_backend_pid())")
    assert caught.value.sqlstate == "57P01"
    assert killed.lost
    assert killer.query("SELECT 1").rows == (("1",),)


def test_a_statement_is_planned_once_for_each_kind_of_value(connect: Connect) -> None:
    connection = connect("a")
    ask = "SELECT it, pg_typeof(it) FROM (SELECT $1 AS it) AS bound"
    for values, row in (
        ((7,), ("7", "integer")),
        ((2**40,), (str(2**40), "bigint")),
        (("x",), ("x", "text")),
        ((8,), ("8", "integer")),
    ):
        assert connection.execute(Request(text=ask, values=values, prepared="typed")).rows == (row,)
    assert connection.query("SELECT count(*) FROM pg_prepared_statements").rows == (("3",),)


def test_a_server_that_is_not_there_is_no_traceback() -> None:
    with pytest.raises(CouldNot, match=r"^could not connect to PostgreSQL"):
        Connection("host=/nowhere port=1 dbname=x", "a")
