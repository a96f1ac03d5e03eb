"""The one-statement probe: what it asks, and what its rows are made into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.answers import ServerError
from failure_matrix.database.classify import Misfit, Probe, Row, Situation, state_of
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import Inventory, previous_columns, previous_types


def row(*matches: str, key: tuple[str, ...] = ("1",)) -> Row:
    return Row(subject="job", key=key, matches=matches, shown=("x",))


@pytest.mark.parametrize(
    ("rows", "kind", "states"),
    [
        ([row()], "unclassified", ()),
        ([row("lost")], "unclassified", ()),  # a state that is not among those asked for
        ([row("a", "b")], "ambiguous", ("a", "b")),
        ([row("a"), row("a")], "duplicate-key", ()),
    ],
)
def test_what_is_in_no_one_state(rows: list[Row], kind: str, states: tuple[str, ...]) -> None:
    found = state_of(rows, frozenset("ab"))
    assert isinstance(found, Misfit)
    assert (found.kind, found.states, found.rows) == (kind, states, tuple(rows))


def test_one_state_is_one_state() -> None:
    assert state_of([row("lost", "b")], frozenset("ab")) == "b"


def test_a_situation_is_read_by_subject_and_key() -> None:
    other = Row(subject="file", key=("1",), matches=(), shown=())
    situation = Situation(rows=(row("a"), row("b"), row("a", key=("2", "x")), other))
    assert {key: len(rows) for key, rows in situation.of("job").items()} == {("1",): 2, ("2", "x"): 1}
    assert list(situation.of("file")) == [("1",)]
    assert situation.of("nothing") == {}


def catalogue(**more: Any) -> Catalogue:
    sql = {
        "late": "job.until <= :now",
        "early": "job.until > :now -- and no more",
        "new": "job.name = 'fresh'",
        "filed": "f.name IS NOT NULL",
    }
    states = {
        id: {"subject": "job", "title": id, "when": {"text": text}, "uncommitted": id == "new"}
        for id, text in sql.items()
    }
    made = {
        "catalogue": {"title": "T"},
        "stores": {"big-files": {"directory": "f"}},
        "subjects": {
            "job": {
                "key": {"shop": "job.shop", "id": "job.id"},
                "from": {"text": "job LEFT JOIN \"big-files\" AS f ON f.name = job.name"},
                "show": ["job.name", "job.data", "f.bytes", "job.id"],
            }
        },
        "states": states,
        "invariants": {
            "few": {"title": "Few", "sql": {"text": "SELECT id AS offending, name FROM job WHERE id > 90"}},
            "kept": {
                "title": "Kept",
                "sql": {"text": "SELECT shop, data -> 'k' AS k FROM previous_job WHERE in_state = 'early' AND id = 1"},
            },
        },
    }  # fmt: skip
    return Catalogue.model_validate({**made, **more})


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[Connection]:
    name = server.create_database()
    made = Connection(server.conninfo(name), "observer")
    made.query("CREATE TABLE job (shop text, id integer, until bigint, name text, data jsonb)")
    yield made
    made.close()
    server.drop_database(name)


@pytest.fixture
def probe(connection: Connection) -> Iterator[Probe]:
    connection.query("BEGIN")
    try:
        connection.query(
            """
            INSERT INTO job VALUES
              ('a', 1, 10, 'x', '{"k": [1]}'), ('a', 2, 5, 'y', NULL), ('', NULL, NULL, E'\\n"', NULL),
              ('b', 1, 3, NULL, NULL)
            """
        )
        made = catalogue()
        yield Probe(made, previous_types(made, connection, {"big-files": ()}))
    finally:
        connection.query("ROLLBACK")


FILES: Inventory = {"big-files": ({"name": "x", "bytes": 3, "sha256": "00", "modified": None},)}


def test_every_predicate_of_every_row_in_one_statement(connection: Connection, probe: Probe) -> None:
    situation = probe.look(connection, now=5, inventory=FILES, previous=None)
    assert [(each.key, each.matches, each.shown) for each in situation.rows] == [
        (("", ""), (), ('\n"', None, None, None)),
        (("a", "1"), ("early", "filed"), ("x", '{"k": [1]}', "3", "1")),
        (("a", "2"), ("late",), ("y", None, None, "2")),
        (("b", "1"), ("late",), (None, None, None, "1")),
    ]
    assert situation.offending == {}


def test_the_clock_may_be_large(connection: Connection, probe: Probe) -> None:
    small = probe.look(connection, now=4, inventory=FILES, previous=None)
    large = probe.look(connection, now=2**40, inventory=FILES, previous=None)
    assert [each.matches for each in small.rows][2] == ("early",)
    assert [each.matches for each in large.rows][2] == ("late",)


def test_invariants_give_their_offending_rows(connection: Connection, probe: Probe) -> None:
    connection.query("INSERT INTO job VALUES ('c', 99, 1, 'n'), ('c', 91, 1, 'm')")
    situation = probe.look(connection, now=5, inventory=FILES, previous=None)
    assert situation.offending == {"few": ('{"name": "m", "offending": 91}', '{"name": "n", "offending": 99}')}


def test_the_step_before_has_its_own_types(connection: Connection, probe: Probe) -> None:
    before = Row(subject="job", key=("a", "1"), matches=("early", "new"), shown=("x", '{"k": [1]}', "3", "1"))
    nothing = Row(subject="job", key=("", ""), matches=("early",), shown=(None, None, None, None))
    situation = probe.look(connection, now=5, inventory=FILES, previous=Situation(rows=(before, nothing)))
    assert situation.offending == {"kept": ('{"k": [1], "shop": "a"}',)}


def test_columns_of_the_step_before() -> None:
    assert previous_columns(catalogue().subjects["job"]) == {
        "shop": 0, "id": 1, "in_state": 2, "name": 3, "data": 4, "bytes": 5, "state": 2,
    }  # fmt: skip


def test_a_session_sees_its_own(connection: Connection, probe: Probe, server: Server) -> None:
    assert len(probe.look_from_session(connection, now=5, inventory=FILES).rows) == 4
    database = connection.query("SELECT current_database()").rows[0][0]
    other = Connection(server.conninfo(str(database)), "other")
    assert probe.look_from_session(other, now=5, inventory=FILES).rows == ()
    other.close()


def test_what_cannot_be_evaluated_is_found(connection: Connection, probe: Probe) -> None:
    wrong = Probe(catalogue(invariants={"bad": {"title": "Bad", "sql": {"text": "SELECT 1 / (id - 1) FROM job"}}}), {})
    connection.query("SAVEPOINT s")
    with pytest.raises(ServerError, match="division by zero"):
        wrong.look(connection, now=5, inventory=FILES, previous=None)
    connection.query("ROLLBACK TO s")
    assert probe.culprit(connection, now=5, inventory=FILES, previous=None) is None
    assert wrong.culprit(connection, now=5, inventory=FILES, previous=None) == ("invariants", "bad", "sql")


def test_a_catalogue_of_nothing_sees_nothing(connection: Connection) -> None:
    nothing = Probe(Catalogue.model_validate({"catalogue": {"title": "T"}}))
    assert nothing.look(connection, now=0, inventory={}, previous=None) == Situation()
