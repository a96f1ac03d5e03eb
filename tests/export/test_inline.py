"""Values written into SQL: the server reads them as they were, whatever they hold, and no brace ends the block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failure_matrix.catalogue.model import Scalar, Sql
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.export.inline import CannotExport, inline, literal, text_literal


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[Connection]:
    name = server.create_database()
    found = Connection(server.conninfo(name), "inline")
    yield found
    found.close()
    server.drop_database(name)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(TEXT)
def test_a_text_holds_no_brace_that_closes(text: str) -> None:
    assert "}" not in text_literal(text)


@given(text=st.one_of(TEXT, st.text("'\\}{x\n$\"E")), conforming=st.sampled_from(["on", "off"]))
def test_the_server_reads_the_text_that_was_written(connection: Connection, text: str, conforming: str) -> None:
    connection.query(f"SET standard_conforming_strings = {conforming}")
    assert connection.query(f"SELECT {text_literal(text)}").rows == ((text,),)


@pytest.mark.parametrize(
    ("value", "type", "read"),
    [
        (None, "text", None), (True, "boolean", "t"), (False, "boolean", "f"), (7, "integer", "7"),
        (-7, "integer", "-7"), (2**31, "bigint", "2147483648"), ("x", "unknown", "x"),
    ],
)  # fmt: skip
def test_a_value_has_the_type_that_it_is_bound_with(
    connection: Connection, value: Scalar, type: str, read: str | None
) -> None:
    expression = literal(value)
    found = connection.query(f"SELECT {expression}, pg_typeof({expression})::text").rows
    assert found == ((read, "unknown" if value is None else type),)


SAME = {  # SQL with a closing brace -> what it gives
    "a string": ("SELECT 'a}b'", "a}b"),
    "an escape string": (r"SELECT E'\}\\}\x7d'", r"}\}}"),
    "a dollar-quoted body": ("SELECT $tag$a'}\\$tag$", "a'}\\"),
    "a name": ('SELECT x."a}\\b" FROM (SELECT 1 AS "a}\\b") AS x', "1"),
    "an array": ("SELECT ('{1,2}'::int[])[2]", "2"),
    "a string in two pieces": ("SELECT 'a}'\n  'b}'", "a}b}"),
    "a comment": ("SELECT 1 -- }\n /* } */", "1"),
}


@pytest.mark.parametrize(("sql", "gives"), SAME.values(), ids=SAME)
def test_sql_with_a_brace_means_the_same_without_it(connection: Connection, sql: str, gives: str) -> None:
    written = inline(Sql(text=sql), {})
    assert "}" not in written
    assert connection.query(written).rows == ((gives,),)
    assert connection.query(sql).rows == ((gives,),)


@pytest.mark.parametrize("sql", ["SELECT U&'a}'", "SELECT N'a}'", "SELECT }"])
def test_a_brace_that_cannot_be_written_otherwise_is_refused(sql: str) -> None:
    with pytest.raises(CannotExport, match="brace"):
        inline(Sql(text=sql), {})


def test_a_value_does_not_grow_together_with_its_neighbours() -> None:
    assert inline(Sql(text="SELECT 1+:a-:b::int LIMIT:c"), {"a": -1, "b": "x", "c": 3}) == (
        "SELECT 1+(-1)-'x'::int LIMIT 3"
    )
    assert inline(Sql(text="SELECT e:a"), {"a": "x"}) == "SELECT e 'x'"


@pytest.mark.parametrize(
    ("text", "params", "values", "written"),
    [
        ("SELECT %(a)s, 5 %% 2", "pyformat", {"a": "it's"}, "SELECT 'it''s', 5 % 2"),
        ("SELECT $1", "numeric", {"1": 4}, "SELECT 4"),
        ("SELECT $1", "none", {}, "SELECT $1"),
    ],
)
def test_parameters_of_every_style_are_written_in(
    text: str, params: str, values: dict[str, Scalar], written: str
) -> None:
    assert inline(Sql.model_validate({"text": text, "params": params}), values) == written


def test_a_parameter_without_a_value_is_refused() -> None:
    with pytest.raises(CannotExport, match="':a' has no value"):
        inline(Sql(text="SELECT :a"), {})
