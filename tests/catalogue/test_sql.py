"""SQL as PostgreSQL's scanner sees it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failure_matrix.catalogue.model import ParameterStyle, Sql
from failure_matrix.catalogue.sql import Kind, Statement, identifiers, normal, significant, statement, tokens

PIECES = [
    "a", "SELECT", "é$1", '"q""q"', 'U&"d"', "'s''s'", "E'\\''", "U&'\\0041'", "B'01'", "x'1F'", "'a'\n  'b'",
    "$$ b ' $$", "$t$ $$ $t$", "$1", "1", "1.5e-3", ".5", "1..2", "0x_1F", "1_000", "::", ":=", ":", ":n", "%(n)s",
    "%%", "+", "-", "<@-", "->>", "#>>", "?|", "/*", "*/", "--", "--\n", "\n", " ", "\t", "[", "]", "(", ")", ",", ";",
    ".", "ARRAY", "\\", "'", '"', "$$", "E'", "\x00", "\u2028", "\U0001f600",
]  # fmt: skip
sql = st.one_of(st.lists(st.sampled_from(PIECES)).map("".join), st.text())
styles = st.sampled_from(["named", "pyformat", "numeric", "none"])


@given(sql, styles)
def test_tokens_tile_their_text(text: str, style: ParameterStyle) -> None:
    found = tokens(text, style)
    assert "".join(token.text for token in found) == text
    assert [token.start for token in found] == [0, *(token.end for token in found)][: len(found)]
    assert all(token.text for token in found)


@given(sql)
def test_white_space_and_comments_between_tokens_change_nothing(text: str) -> None:
    assert normal(normal(text)) == normal(text)


@given(sql)
def test_sql_without_parameters_is_sent_as_it_is(text: str) -> None:
    if text and not any(token.kind is Kind.PARAMETER for token in tokens(text)):
        assert statement(Sql(text=text)) == Statement(text, ())


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("/* a /* b */ c */", [Kind.COMMENT]),
        ("/* a /* b */ c", [Kind.UNFINISHED]),
        ("-- a\r\nb", [Kind.COMMENT, Kind.SPACE, Kind.WORD]),
        ("a--b", [Kind.WORD, Kind.COMMENT]),
        ("+/*c*/", [Kind.OPERATOR, Kind.COMMENT]),
        ("'it''s'", [Kind.STRING]),
        ("'a' -- and\n 'b'", [Kind.STRING]),
        ("'a' 'b'", [Kind.STRING, Kind.SPACE, Kind.STRING]),
        (r"E'\'' ", [Kind.STRING, Kind.SPACE]),
        (r"'\' ", [Kind.STRING, Kind.SPACE]),
        ("E'a'\n'\\''", [Kind.STRING]),
        ("e 'a'", [Kind.WORD, Kind.SPACE, Kind.STRING]),
        ("n'a'", [Kind.STRING]),
        ("U&'a'", [Kind.STRING]),
        ("u & 'a'", [Kind.WORD, Kind.SPACE, Kind.OPERATOR, Kind.SPACE, Kind.STRING]),
        ("'open", [Kind.UNFINISHED]),
        ('"a""b"', [Kind.QUOTED]),
        ("$$a$b$$", [Kind.BODY]),
        ("$a$ $b$ $a$", [Kind.BODY]),
        ("$a$ $b$", [Kind.UNFINISHED]),
        ("a$b$c", [Kind.WORD]),
        ("$1a", [Kind.POSITION, Kind.WORD]),
        ("größe_1", [Kind.WORD]),
        ("1_000", [Kind.NUMBER]),
        ("0x1F 0o17 0b1", [Kind.NUMBER, Kind.SPACE, Kind.NUMBER, Kind.SPACE, Kind.NUMBER]),
        ("1e5", [Kind.NUMBER]),
        ("1.e5", [Kind.NUMBER]),
        ("1..5", [Kind.NUMBER, Kind.MARK, Kind.NUMBER]),
        ("1.a", [Kind.NUMBER, Kind.WORD]),
        ("a::b", [Kind.WORD, Kind.MARK, Kind.WORD]),
        ("a:=:b", [Kind.WORD, Kind.MARK, Kind.PARAMETER]),
        ("a=-1", [Kind.WORD, Kind.OPERATOR, Kind.OPERATOR, Kind.NUMBER]),
        ("a@-1", [Kind.WORD, Kind.OPERATOR, Kind.NUMBER]),
        ("a<>:b", [Kind.WORD, Kind.OPERATOR, Kind.PARAMETER]),
        ("\\", [Kind.OTHER]),
    ],
)
def test_kinds(text: str, kinds: list[Kind]) -> None:
    assert [token.kind for token in tokens(text)] == kinds


@pytest.mark.parametrize(
    ("text", "sent", "names"),
    [
        ("a = :a AND b = :b AND c = :a", "a = $1 AND b = $2 AND c = $1", ("a", "b")),
        ("LIMIT :limit", "LIMIT $1", ("limit",)),
        (":owner::text", "$1::text", ("owner",)),
        ("a[1:n], a[:n], a[m:n]", "a[1:n], a[:n], a[m:n]", ()),
        ("a[(:n)]", "a[($1)]", ("n",)),
        ("a[b[1]:n], f(x)[1:n], a[1][1:n], \"q\"[1:n]", "a[b[1]:n], f(x)[1:n], a[1][1:n], \"q\"[1:n]", ()),
        ("ARRAY[:a, :b]", "ARRAY[$1, $2]", ("a", "b")),
        ("array[[:a], [:b]]", "array[[$1], [$2]]", ("a", "b")),
        ("t.array[1:n]", "t.array[1:n]", ()),
        ("(:a)[1:n]", "($1)[1:n]", ("a",)),
        ("f(a => :a)", "f(a => $1)", ("a",)),
        ("a ? :a AND b ?| :b", "a ? $1 AND b ?| $2", ("a", "b")),
        ("':a' \":a\" E'\\':a' $$ :a $$ /* :a */ -- :a", "':a' \":a\" E'\\':a' $$ :a $$ /* :a */ -- :a", ()),
        ("x := 1, y := :y", "x := 1, y := $1", ("y",)),
        (":é", "$1", ("é",)),
        (": a", ": a", ()),
        ("a = %(a)s", "a = %(a)s", ()),
    ],
)  # fmt: skip
def test_named_parameters(text: str, sent: str, names: tuple[str, ...]) -> None:
    assert statement(Sql(text=text)) == Statement(sent, names)


@pytest.mark.parametrize(
    ("style", "text", "sent", "names"),
    [
        ("pyformat", "a =%(a)s OR b LIKE 'x%%' OR c %% 2 = %(a)s", "a =$1 OR b LIKE 'x%' OR c % 2 = $1", ("a",)),
        ("pyformat", "'%(a)s' :b", "'%(a)s' :b", ()),
        ("pyformat", "a %%(b) %(c)s", "a %(b) $1", ("c",)),
        ("numeric", "a = $2 AND b = $1 AND c = :c AND '$9'", "a = $2 AND b = $1 AND c = :c AND '$9'", ("1", "2")),
        ("numeric", "a = $3", "a = $3", ("1", "2", "3")),
        ("none", "a = :a AND b = $1 AND %(c)s", "a = :a AND b = $1 AND %(c)s", ()),
    ],
)
def test_other_styles(style: ParameterStyle, text: str, sent: str, names: tuple[str, ...]) -> None:
    assert statement(Sql(text=text, params=style)) == Statement(sent, names)


def test_a_position_of_any_length_is_no_reason_to_stop() -> None:
    assert len(statement(Sql(text="SELECT $" + "9" * 5000, params="numeric")).parameters) == 65535


def test_identifiers_are_folded_and_looked_for_in_bodies() -> None:
    text = "CREATE FUNCTION F() AS $a$ SELECT \"Foo\" FROM BAR; EXECUTE $b$ ÄRGER $b$ $a$ -- no\n, 'no', :p"
    assert identifiers(text) == {"create", "function", "f", "as", "select", "Foo", "from", "bar", "execute", "Ärger"}


def test_only_what_means_something_is_left() -> None:
    assert normal("SELECT  1 -- one\n, /* two */ 'a  b'") == normal("SELECT 1,'a  b'") == "SELECT 1 , 'a  b'"
    assert normal("a b") != normal("ab")


def test_a_quoted_name_is_its_text() -> None:
    assert [token.name for token in significant('U&"A""b" Ab')] == ['A"b', "ab"]
