"""Guards by token position: each is found once, a cut touches nothing else, and what is left is SQL that lexes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failure_matrix.catalogue.guards import Guard, Part, body_of, compares, guards, without
from failure_matrix.catalogue.model import ParameterStyle, Sql
from failure_matrix.catalogue.sql import SILENT, Kind, statement, tokens


def found(text: str, part: Part = Part.CONDITION, style: ParameterStyle = "named") -> list[str]:
    return [guard.text for guard in guards(Sql(text=text, params=style)) if guard.part is part]


def cut(text: str, guard: str, style: ParameterStyle = "named") -> str:
    """The statement as it is sent, without the first guard that is so written."""
    sql = Sql(text=text, params=style)
    return statement(without(sql, next(each for each in guards(sql) if each.text == guard))).text


CONDITIONS = {
    "an update": ("UPDATE job SET state = 'x' WHERE id = :id AND epoch = :epoch", ["id = :id", "epoch = :epoch"]),
    "no where": ("UPDATE job SET state = 'where a and b'", []),
    "or is one": ("DELETE FROM job WHERE a = 1 AND b = 2 OR c = 3", ["a = 1 AND b = 2 OR c = 3"]),
    "or in parentheses is one of several": ("DELETE FROM job WHERE a AND (b OR c)", ["a", "(b OR c)"]),
    "and in parentheses is several": ("DELETE FROM job WHERE (a AND (b AND c)) AND d", ["a", "b", "c", "d"]),
    "not": ("DELETE FROM job WHERE NOT (a AND b) AND NOT c", ["NOT (a AND b)", "NOT c"]),
    "between": (
        "DELETE FROM job WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN SYMMETRIC 3 AND 4 AND c",
        ["a BETWEEN 1 AND 2", "b NOT BETWEEN SYMMETRIC 3 AND 4", "c"],
    ),
    "case": (
        "DELETE FROM job WHERE CASE WHEN a AND b THEN c ELSE d OR e END AND f",
        ["CASE WHEN a AND b THEN c ELSE d OR e END", "f"],
    ),
    "distinct": (
        "UPDATE job SET a = 1 WHERE a IS DISTINCT FROM :a AND b IS NOT DISTINCT FROM :b RETURNING *",
        ["a IS DISTINCT FROM :a", "b IS NOT DISTINCT FROM :b"],
    ),
    "a subquery": (
        "UPDATE job SET a = 1 WHERE id = (SELECT id FROM job WHERE s = 'r' AND t ORDER BY id LIMIT 1) AND u",
        ["id = (SELECT id FROM job WHERE s = 'r' AND t ORDER BY id LIMIT 1)", "s = 'r'", "t", "u"],
    ),
    "exists": (
        "UPDATE job SET a = 1 WHERE EXISTS (SELECT FROM file AS f WHERE f.job = job.id)",
        ["EXISTS (SELECT FROM file AS f WHERE f.job = job.id)", "f.job = job.id"],
    ),
    "a subquery by itself": ("DELETE FROM job WHERE (SELECT a AND b)", ["(SELECT a AND b)"]),
    "common table expressions": (
        (
            "WITH one AS (SELECT id FROM job WHERE a AND b), two AS MATERIALIZED (DELETE FROM c WHERE d RETURNING *)"
            " UPDATE job SET x = 1 FROM one WHERE job.id = one.id AND e"
        ),
        ["a", "b", "d", "job.id = one.id", "e"],
    ),
    "update from": ("UPDATE a SET x = b.x FROM b JOIN c ON c.i AND c.j WHERE a.id = b.id", ["a.id = b.id"]),
    "delete using": ("DELETE FROM a USING b WHERE a.id = b.id AND b.x RETURNING a.id", ["a.id = b.id", "b.x"]),
    "insert select": (
        "INSERT INTO job (id) SELECT id FROM wish WHERE a AND b ON CONFLICT (id) DO NOTHING",
        ["a", "b"],
    ),
    "on conflict": (
        "INSERT INTO job (id) SELECT 1 WHERE ok ON CONFLICT (id) WHERE live DO UPDATE SET x = 1 WHERE job.x < 2",
        ["ok"],
    ),
    "after an on conflict": (
        "WITH made AS (INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING RETURNING id) SELECT id FROM made WHERE b",
        ["b"],
    ),
    "a statement after an on conflict": (
        "INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING; DELETE FROM b WHERE c",
        ["c"],
    ),
    "filter": ("SELECT count(*) FILTER (WHERE a AND b) FROM job WHERE c", ["c"]),
    "a window": (
        (
            "SELECT sum(x) OVER w FROM job WHERE a WINDOW w AS (PARTITION BY y ORDER BY z"
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
        ),
        ["a"],
    ),
    "set operations": (
        "SELECT 1 FROM a WHERE b UNION ALL SELECT 2 FROM c WHERE d GROUP BY e HAVING f AND g LIMIT 1",
        ["b", "d"],
    ),
    "fetch": ("SELECT 1 FROM a WHERE b OFFSET 1 ROW FETCH FIRST ROW ONLY", ["b"]),
    "merge": (
        (
            "MERGE INTO job AS t USING (SELECT id FROM wish WHERE a AND b) AS s ON t.id = s.id AND t.x"
            " WHEN MATCHED AND t.state = 'r' THEN UPDATE SET x = 1"
            " WHEN NOT MATCHED AND s.y THEN INSERT (id) VALUES (1)"
        ),
        ["a", "b"],
    ),
    "functions with words inside": (
        (
            "SELECT 1 FROM a WHERE extract(epoch FROM b) > 1 AND substring(c FROM 1 FOR 2) = 'x'"
            " AND trim(BOTH 'x' FROM d) = '' AND overlay(e PLACING 'f' FROM 1 FOR 2) = 'g' AND h"
        ),
        [
            "extract(epoch FROM b) > 1",
            "substring(c FROM 1 FOR 2) = 'x'",
            "trim(BOTH 'x' FROM d) = ''",
            "overlay(e PLACING 'f' FROM 1 FOR 2) = 'g'",
            "h",
        ],
    ),
    "names that are words": (
        'SELECT a AS where, b AS order FROM "where" AS "and" WHERE "and"."or" = 1 AND "and".group = 2 AND c.order = 3',
        ['"and"."or" = 1', '"and".group = 2', "c.order = 3"],
    ),
    "strings and bodies": (
        "SELECT 1 FROM a WHERE b = 'WHERE x AND y' AND c = E'\\' OR ' AND d = $$ AND WHERE $$ AND e = :where",
        ["b = 'WHERE x AND y'", "c = E'\\' OR '", "d = $$ AND WHERE $$", "e = :where"],
    ),
    "comments between": (
        "DELETE FROM job WHERE -- AND x\n a /* OR */ = 1 /* AND /* nested */ y */ AND b = 2 -- OR z\n",
        ["a = 1", "b = 2"],
    ),
    "arrays": ("SELECT 1 FROM a WHERE b[1] = 1 AND c = ARRAY[d AND e] AND f", ["b[1] = 1", "c = ARRAY[d AND e]", "f"]),
    "a row": ("DELETE FROM a WHERE (b, c) = (:b, :c) AND (d) AND (e, f) IN (SELECT g, h)",
              ["(b, c) = (:b, :c)", "(d)", "(e, f) IN (SELECT g, h)"]),
    "several statements": ("DELETE FROM a WHERE b; DELETE FROM c WHERE d AND e", ["b", "d", "e"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CONDITIONS.values(), ids=list(CONDITIONS))
def test_conditions(text: str, expected: list[str]) -> None:
    assert found(text) == expected


LOCKS = {
    "one": ("SELECT 1 FROM a WHERE b FOR UPDATE", ["FOR UPDATE"]),
    "skip locked": ("SELECT 1 FROM a FOR UPDATE SKIP LOCKED", ["FOR UPDATE SKIP LOCKED", "SKIP LOCKED"]),
    "of tables": (
        "SELECT 1 FROM a, s.b FOR UPDATE OF a, s.b NOWAIT",
        ["FOR UPDATE OF a, s.b NOWAIT", "NOWAIT"],
    ),
    "every strength": (
        "SELECT 1 FROM a FOR NO KEY UPDATE OF a FOR SHARE OF b FOR KEY SHARE OF c",
        ["FOR NO KEY UPDATE OF a", "FOR SHARE OF b", "FOR KEY SHARE OF c"],
    ),
    "substring": ("SELECT substring(a FROM 1 FOR update) FROM b WHERE substring(c for 2) = 'x'", []),
    "names": ("SELECT a.for, 1 AS for FROM a", []),
    "inside": (
        "UPDATE a SET b = 1 WHERE id = (SELECT id FROM a FOR UPDATE SKIP LOCKED LIMIT 1)",
        ["FOR UPDATE SKIP LOCKED", "SKIP LOCKED"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), LOCKS.values(), ids=list(LOCKS))
def test_lock_clauses(text: str, expected: list[str]) -> None:
    assert found(text, Part.LOCK) == expected


ASSIGNMENTS = {
    "several": (
        "UPDATE a SET b = 1, c = f(d, e), (g, h) = (1, 2) WHERE i",
        ["b = 1", "c = f(d, e)", "(g, h) = (1, 2)"],
    ),
    "a single one can't go": ("UPDATE a SET b = 1 WHERE c", []),
    "an array": ("UPDATE a SET b = ARRAY[1, 2], c = 3", ["b = ARRAY[1, 2]", "c = 3"]),
    "a case": (
        "UPDATE a SET b = CASE WHEN c THEN 1 ELSE 2 END, d = e IS DISTINCT FROM f FROM g",
        ["b = CASE WHEN c THEN 1 ELSE 2 END", "d = e IS DISTINCT FROM f"],
    ),
    "do update": (
        "INSERT INTO a VALUES (1) ON CONFLICT (b) DO UPDATE SET c = 1, d = 2 WHERE e",
        ["c = 1", "d = 2"],
    ),
    "merge": (
        "MERGE INTO a USING b ON c WHEN MATCHED THEN UPDATE SET d = 1, e = 2 WHEN NOT MATCHED THEN INSERT VALUES (1)",
        ["d = 1", "e = 2"],
    ),
    "a long name": ("UPDATE ONLY s.a * AS b SET c = 1, d = 2", ["c = 1", "d = 2"]),
    "the command": ("SELECT 1 FROM a FOR UPDATE; SET LOCAL x TO 1, 2", []),
}


@pytest.mark.parametrize(("text", "expected"), ASSIGNMENTS.values(), ids=list(ASSIGNMENTS))
def test_assignments(text: str, expected: list[str]) -> None:
    assert found(text, Part.ASSIGNMENT) == expected


CUTS = [
    ("DELETE FROM a WHERE b = :b AND c = :c", "b = :b", "DELETE FROM a WHERE true AND c = $1"),
    ("UPDATE a SET d = :d WHERE b = :b AND c = :c", "b = :b", "UPDATE a SET d = $1 WHERE true AND c = $2"),
    ("DELETE FROM a WHERE(b)AND(c)OR d", "(b)AND(c)OR d", "DELETE FROM a WHERE true"),
    ("DELETE FROM a WHERE(b)AND(c)", "(b)", "DELETE FROM a WHERE true AND(c)"),
    ("DELETE FROM a WHERE(b)AND(c)", "(c)", "DELETE FROM a WHERE(b)AND true"),
    ("DELETE FROM a WHERE(b AND c)", "b", "DELETE FROM a WHERE(true AND c)"),
    ("DELETE FROM a WHERE /*x*/ b /*y*/ AND c -- z", "b", "DELETE FROM a WHERE /*x*/ true /*y*/ AND c -- z"),
    ("SELECT 1 FROM a FOR UPDATE SKIP LOCKED", "SKIP LOCKED", "SELECT 1 FROM a FOR UPDATE "),
    ("SELECT (SELECT 1 FROM a FOR UPDATE OF a NOWAIT)", "FOR UPDATE OF a NOWAIT", "SELECT (SELECT 1 FROM a )"),
    ("UPDATE a SET b = 1, c = 2, d = 3 WHERE e", "b = 1", "UPDATE a SET c = 2, d = 3 WHERE e"),
    ("UPDATE a SET b = 1, c = 2, d = 3 WHERE e", "c = 2", "UPDATE a SET b = 1, d = 3 WHERE e"),
    ("UPDATE a SET b = 1, c = 2, d = 3 WHERE e", "d = 3", "UPDATE a SET b = 1, c = 2 WHERE e"),
]


@pytest.mark.parametrize(("text", "guard", "expected"), CUTS)
def test_a_cut_changes_one_place(text: str, guard: str, expected: str) -> None:
    assert cut(text, guard) == expected


def test_parameters_are_renumbered_in_every_style() -> None:
    named = "UPDATE a SET x = :x WHERE b = :b AND c = :x AND d % 2 = 0"
    pyformat = named.replace(":x", "%(x)s").replace(":b", "%(b)s").replace("% 2", "%% 2")
    numeric = named.replace(":x", "$2").replace(":b", "$1")
    assert cut(named, "b = :b") == "UPDATE a SET x = $1 WHERE true AND c = $1 AND d % 2 = 0"
    assert cut(pyformat, "b = %(b)s", "pyformat") == "UPDATE a SET x = $1 WHERE true AND c = $1 AND d % 2 = 0"
    assert cut(numeric, "b = $1", "numeric") == "UPDATE a SET x = $1 WHERE true AND c = $1 AND d % 2 = 0"


def test_a_position_that_went_with_its_guard_is_asked_for_no_more() -> None:
    sql = Sql(text="UPDATE a SET x = '%' WHERE b = $1 AND c = $2", params="numeric")
    without_first = without(sql, guards(sql)[0])
    assert statement(without_first).parameters == ("2",)  # bound by the name that it always had
    assert statement(without_first).text == "UPDATE a SET x = '%' WHERE true AND c = $1"


def test_guards_of_a_function_are_in_its_body() -> None:
    definition = (
        "CREATE OR REPLACE FUNCTION public.take(p_id bigint, p_note text DEFAULT '$$'::text)\n RETURNS bigint\n"
        " LANGUAGE plpgsql\nAS $function$\nDECLARE got bigint;\nBEGIN\n"
        "  IF EXISTS (SELECT FROM job WHERE id = p_id AND held) THEN RETURN NULL; END IF;\n"
        "  FOR got IN SELECT id FROM job WHERE a AND b LOOP\n    NULL;\n  END LOOP;\n"
        "  SELECT id FROM job WHERE id = p_id AND free FOR UPDATE INTO got;\n"
        "  UPDATE job SET x = CASE WHEN c THEN 1 END, y = 2 WHERE job.id = got AND d = $1 INTO STRICT got;\n"
        "  RETURN got;\nEND;\n$function$\n"
    )
    inside = body_of(definition)
    assert inside is not None
    begins, body = inside
    assert definition[begins : begins + len(body)] == body
    assert found(body, style="none") == [
        "id = p_id", "held", "a", "b", "id = p_id", "free", "job.id = got", "d = $1"
    ]  # fmt: skip
    assert found(body, Part.LOCK, "none") == ["FOR UPDATE"]
    assert body_of("CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1") is None


BINDING = {
    "id = :id": True,
    ":id::bigint = job.id": True,
    "(id = :id)": True,
    "id IN (:id)": True,
    "id = (SELECT id FROM job WHERE id = :id AND state = 'ready' FOR UPDATE)": True,
    "(queue, id) = (:queue, :id)": True,
    "id > :id": False,
    "id = :other": False,
    "epoch = :id": False,
    "candidate_name(id, epoch) = :id": False,
    "EXISTS (SELECT FROM grants WHERE grants.id = :id)": False,
    "id = (SELECT min(id) FROM job)": False,
}


@pytest.mark.parametrize(("condition", "binds"), BINDING.items())
def test_the_condition_that_binds_the_key(condition: str, binds: bool) -> None:
    assert compares(Sql(text=condition), "job.id", {"id"}) is binds


def test_in_a_function_any_single_name_may_be_the_key() -> None:
    def binds(condition: str) -> bool:
        return compares(Sql(text=condition, params="none"), "job.id", None)

    assert binds("id = p_id")
    assert binds("$1 = job.id")
    assert binds("job.id = take.p_id")
    assert not binds("id = 1")
    assert not binds("id = (SELECT min(id) FROM job)")
    assert not binds("epoch = p_epoch")


# One condition each, as it must come back; none has an AND or OR of its own level.
ATOMS = st.sampled_from(
    [
        "id = :id",
        "a IS DISTINCT FROM :b",
        "x BETWEEN :low AND :high",
        "NOT (p AND q)",
        "CASE WHEN p OR q THEN r END",
        "(p OR q)",
        "EXISTS (SELECT 1)",
        "s = 'AND'",
        "t = $q$ OR WHERE $q$",
        '"where" = 1',
        "j.order = 2",
        "u[1:2] = v",
        "substring(w FROM 1 FOR 2) = ''",
        "data ? 'k'",
        "tags @> ARRAY['a', 'b']",
        "n = -1",
        "k IN (:k, 2)",
        "z::text = ''",
    ]
)
SPACES = st.sampled_from([" ", "\n", "  ", " /* AND */ ", " -- OR\n"])
FRAMES = st.sampled_from(
    [
        ("UPDATE job SET a = :a, b = 2 WHERE", ""),
        ("UPDATE job SET a = 1 FROM other WHERE", "RETURNING id"),
        ("DELETE FROM job USING other WHERE", ";"),
        ("INSERT INTO job (id) SELECT :id WHERE", "ON CONFLICT (id) WHERE live DO NOTHING"),
        ("WITH one AS (SELECT id FROM job WHERE", ") SELECT count(*) FILTER (WHERE x) FROM one"),
        ("UPDATE job SET a = 1 WHERE id = ANY (SELECT id FROM job WHERE", "ORDER BY id LIMIT 1 FOR UPDATE)"),
    ]
)


def written(frame: tuple[str, str], atoms: Sequence[str], spaces: Sequence[str]) -> str:
    head, tail = frame
    first, last, *between = spaces
    joined = atoms[0]
    for atom, space in zip(atoms[1:], between, strict=False):
        joined += f"{space}AND{space}{atom}"
    return f"{head}{first}{joined}{last}{tail}"


@given(FRAMES, st.lists(ATOMS, min_size=1, max_size=4), st.lists(SPACES, min_size=5, max_size=5), st.data())
def test_each_condition_is_found_and_cut_alone(
    frame: tuple[str, str], atoms: list[str], spaces: list[str], data: st.DataObject
) -> None:
    text = written(frame, atoms, spaces)
    conditions = [guard for guard in guards(Sql(text=text)) if guard.part is Part.CONDITION]
    outer = [guard for guard in conditions if guard.text.startswith("id = ANY")]
    inner = [guard for guard in conditions if guard not in outer]
    assert [guard.text for guard in inner] == atoms
    which = data.draw(st.integers(0, len(atoms) - 1))
    changed = [*atoms[:which], "true", *atoms[which + 1 :]]
    assert inner[which].cut(text) == written(frame, changed, spaces)


WORDS = (
    "SELECT UPDATE SET WHERE AND OR NOT BETWEEN CASE WHEN THEN END FOR SHARE KEY SKIP LOCKED NOWAIT OF ON CONFLICT"
    " FILTER FROM DISTINCT RETURNING MERGE AS INTO"
)
OTHERS = """( ) [ ] , . ; = <> :: a "and" 'or' $$where$$ $1 :b %(c)s %% 1"""
PIECES = st.sampled_from([*WORDS.split(), *OTHERS.split(), "/* x */", "-- y\n", "\n", " "])
STYLES: st.SearchStrategy[ParameterStyle] = st.sampled_from(["named", "pyformat", "numeric", "none"])


@given(st.lists(st.tuples(PIECES, st.sampled_from(["", " "])), min_size=1, max_size=40), STYLES)
def test_whatever_the_words_a_mutant_differs_in_one_place_and_lexes(
    pieces: list[tuple[str, str]], style: ParameterStyle
) -> None:
    text = "".join(piece + space for piece, space in pieces)
    sql = Sql(text=text, params=style)
    whole = tokens(text, style)
    for guard in guards(sql):
        assert 0 <= guard.start < guard.end <= len(text)
        assert _nothing_cut(guard, text).cut(text) == text
        mutant = guard.cut(text)
        assert mutant.startswith(text[: guard.start])
        assert mutant.endswith(text[guard.end :])
        left = [token.text for token in whole if token.end <= guard.start and token.kind not in SILENT]
        right = [token.text for token in whole if token.start >= guard.end and token.kind not in SILENT]
        instead = guard.instead.split()
        again = [token.text for token in tokens(mutant, style) if token.kind not in SILENT]
        assert again == [*left, *instead, *right]
        sent = statement(without(sql, guard))
        assert set(sent.parameters) <= set(statement(sql).parameters)


def _nothing_cut(guard: Guard, text: str) -> Guard:
    return Guard(
        part=guard.part, start=guard.start, end=guard.end, text=guard.text, instead=text[guard.start : guard.end]
    )


@given(FRAMES, st.lists(ATOMS, min_size=1, max_size=4), st.lists(SPACES, min_size=5, max_size=5))
def test_a_mutant_asks_for_each_parameter_that_it_names_and_no_other(
    frame: tuple[str, str], atoms: list[str], spaces: list[str]
) -> None:
    sql = Sql(text=written(frame, atoms, spaces))
    for guard in guards(sql):
        sent = statement(without(sql, guard))
        positions = {token.text for token in tokens(sent.text, "numeric") if token.kind is Kind.POSITION}
        assert positions == {f"${number}" for number in range(1, len(sent.parameters) + 1)}
