"""Between orders tables are emptied so that nobody can tell: neither by their rows nor by their order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from failure_matrix.database.answers import Result, ServerError
from failure_matrix.verify.ground import Ground, laid
from failure_matrix.verify.prepare import insertion

from .proving import Stage, template

SCHEMA = """
catalogue:
  title: Tables
  schema:
    - |
      CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', epoch integer NOT NULL DEFAULT 0);
      CREATE TABLE log (what text);
%s
"""
ROWS = [[insertion("job", {"id": id})] for id in (3, 1, 2)]


@contextmanager
def _ground(stage: Stage, more: str = "") -> Iterator[Ground]:
    catalogue = stage.catalogue(SCHEMA % "".join(f"      {line}\n" for line in more.splitlines()))
    with template(catalogue, stage.server) as (name, probe), laid(stage.server, name, probe) as ground:
        yield ground


def _again(ground: Ground) -> None:
    """Make the ground roughly new, with three rows that are not in the order of their ids."""
    answers = ground.renew(*ROWS, as_new=False)
    assert [answer for answer in answers if not isinstance(answer, Result)] == []


def _ask(ground: Ground, text: str) -> str | None:
    return ground.admin.query(text).rows[0][0]


def test_rows_come_in_the_order_in_which_they_were_put_there(stage: Stage) -> None:
    with _ground(stage) as ground:
        pages = set()
        for _ in range(300):
            _again(ground)
            ground.admin.query("UPDATE job SET epoch = epoch + 1 WHERE id = 1")
            assert _ask(ground, "SELECT string_agg(id::text, ' ') FROM job") == "3 2 1"
            pages.add(_ask(ground, "SELECT pg_relation_size('job') / 8192"))
        assert pages == {"1"}


def test_a_table_is_as_new_before_its_page_is_full(stage: Stage) -> None:
    with _ground(stage) as ground:
        places = []
        for _ in range(100):
            _again(ground)
            places.append(_ask(ground, "SELECT ctid FROM job WHERE id = 3"))
        assert places[:3] == ["(0,1)", "(0,1)", "(0,4)"]  # the first two find out what is filled
        assert len(set(places)) < 40
        assert places.count("(0,1)") > 3


def test_wide_rows_fill_a_page_sooner(stage: Stage) -> None:
    with _ground(stage) as ground:
        places = []
        for _ in range(12):
            _again(ground)
            places.append(_ask(ground, "SELECT ctid FROM job WHERE id = 3"))
            ground.admin.query("UPDATE job SET state = repeat('x', 1900)")
        assert set(places) == {"(0,1)", "(0,7)"}


def test_what_is_asked_to_be_new_is_new(stage: Stage) -> None:
    with _ground(stage) as ground:
        for _ in range(5):
            _again(ground)
        ground.renew(*ROWS)
        assert _ask(ground, "SELECT ctid FROM job WHERE id = 3") == "(0,1)"


SPECIAL = {  # what hangs on a table so that DELETE would do more than empty it
    "trigger": (
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO log VALUES (old.id); RETURN old; END';\n"
        "CREATE TRIGGER t BEFORE DELETE ON job FOR EACH ROW EXECUTE FUNCTION note();"
    ),
    "rule": "CREATE RULE r AS ON DELETE TO job DO INSTEAD INSERT INTO log VALUES (old.id);",
    "reference": "CREATE TABLE part (job bigint REFERENCES job ON DELETE RESTRICT);",
    "policy": "ALTER TABLE job ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;",
}


@pytest.mark.parametrize("more", SPECIAL.values(), ids=SPECIAL)
def test_where_something_hangs_on_a_table_it_is_always_as_new(stage: Stage, more: str) -> None:
    with _ground(stage, more) as ground:
        for _ in range(4):
            _again(ground)
            assert _ask(ground, "SELECT ctid FROM job WHERE id = 3") == "(0,1)"
            assert _ask(ground, "SELECT count(*) FROM log") == "0"


def test_a_table_that_is_filled_now_and_then_is_emptied_too(stage: Stage) -> None:
    with _ground(stage) as ground:
        for number in range(8):
            _again(ground)
            assert _ask(ground, "SELECT count(*) FROM log") == "0"
            if number % 3 == 0:
                ground.admin.query("INSERT INTO log VALUES ('now')")


def test_a_table_that_is_in_the_way_makes_a_new_database(stage: Stage) -> None:
    with _ground(stage) as ground:
        for _ in range(3):
            _again(ground)
        ground.admin.query("DROP TABLE job")
        before = ground.admin.pid
        _again(ground)
        assert ground.admin.pid != before
        assert _ask(ground, "SELECT count(*) FROM job") == "3"


def test_a_schema_that_nobody_looked_at_is_looked_at_when_asked(stage: Stage) -> None:
    with _ground(stage) as ground:
        for _ in range(3):
            _again(ground)
        ground.admin.query("CREATE TABLE more (a integer)")
        answers = ground.renew(*ROWS, as_new=False, any_shape=True)
        assert not any(isinstance(answer, ServerError) for answer in answers)
        assert not ground.same_shape()
        ground.renew(as_new=False)
        assert ground.same_shape()
        assert _ask(ground, "SELECT to_regclass('more')") is None
