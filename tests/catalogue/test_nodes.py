"""YAML as a tree: core scalars, places, and what is not let in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import yaml

from failure_matrix.catalogue import nodes
from failure_matrix.catalogue.nodes import Items, Node, NotYamlError, Pairs, Word, compose, core


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((null, None) for null in ("", "~", "null", "Null", "NULL")),
        *((true, True) for true in ("true", "True", "TRUE")),
        *((false, False) for false in ("false", "False", "FALSE")),
        ("0", 0), ("-12", -12), ("+3", 3), ("010", 10), ("0x1F", 31),
        ("1.50", Decimal("1.50")), (".5", Decimal("0.5")), ("5.", Decimal(5)), ("1e3", Decimal("1e3")),
        (".inf", Decimal("Infinity")), ("-.INF", Decimal("-Infinity")),
        *((text, text) for text in ("yes", "on", "no", "y", "nULL", "0o17", "1:30", "2027-01-31", "1_000")),
        *((text, text) for text in ("0x", "-", ".", "12a", "1e", "+.inf.", "Infinity", "nan")),
    ],
)  # fmt: skip
def test_core_scalars(text: str, value: object) -> None:
    found = core(text)
    assert (type(found), found) == (type(value), value)


def test_a_decimal_keeps_its_digits() -> None:
    assert str(core("1.50")) == "1.50"
    assert str(core("9" * 5000 + ".0")).startswith("999")
    assert core("9" * 5000) == Decimal("9" * 5000)
    assert str(core(".nan")) == "NaN"


def tree(text: str) -> Node:
    root = compose(text, "a.yaml")
    assert root is not None
    return root


@pytest.fixture(params=["libyaml", "pure"])
def _either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    parsers: dict[str, Any] = {"libyaml": yaml.CBaseLoader, "pure": yaml.BaseLoader}
    monkeypatch.setattr(nodes, "_Parser", parsers[request.param])


@pytest.mark.usefixtures("_either_parser")
def test_places_count_characters_from_one() -> None:
    root = tree("# ä\nä: [ü, {'é': x}]\nb: |\n  c\n")
    assert isinstance(root, Pairs)
    (key, items), (_, block) = root.pairs
    assert isinstance(items, Items)
    inner = items.items[1]
    assert isinstance(inner, Pairs)
    assert str(key.place) == "a.yaml:2:1"
    assert str(items.place) == "a.yaml:2:4"
    assert str(inner.place) == "a.yaml:2:8"
    assert str(inner.pairs[0][1].place) == "a.yaml:2:14"
    assert isinstance(block, Word)
    assert (str(block.place), block.text, block.style) == ("a.yaml:3:4", "c\n", "|")
    assert [items.flow, inner.flow, block.flow, root.flow] == [True, True, False, False]


@pytest.mark.usefixtures("_either_parser")
def test_a_quoted_word_is_text() -> None:
    root = tree("[1, '1', \"true\", ! null]")
    assert isinstance(root, Items)
    assert [word.value for word in root.items if isinstance(word, Word)] == [1, "1", "true", "null"]


@pytest.mark.usefixtures("_either_parser")
def test_an_alias_is_the_same_node() -> None:
    root = tree("a: &x {b: c}\nd: *x\n")
    assert isinstance(root, Pairs)
    assert root.pairs[0][1] is root.pairs[1][1]


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize(
    ("text", "rule", "said"),
    [
        ("a: b: c", "yaml-syntax", "a ': ' stands inside a plain value"),
        ("a: @b", "yaml-syntax", "a plain value cannot begin like this"),
        ("a:\n\tb: c", "yaml-syntax", "a tab indents this line"),
        ("a: 'b", "yaml-syntax", "a quote that nothing closes"),
        ("a: \x07", "yaml-syntax", "the character U+0007 may not stand in YAML"),
        ('a: "\\0"', "yaml-syntax", "an escape stands for a character that text cannot hold"),
        ("a: !x b", "yaml-feature", "the tag '!x' says nothing here"),
        ("a: !x [b]", "yaml-feature", "the tag '!x' says nothing here"),
        ("a\n---\nb", "yaml-feature", "a second document begins here"),
        ("a: &a [*a]", "yaml-feature", "the alias '*a' stands inside its own anchor"),
        ("a: *a", "yaml-feature", "the alias '*a' has no anchor before it"),
        ("[" * 65 + "]" * 65, "yaml-feature", "nested deeper than 64"),
        ("- " * 100 + "a", "yaml-feature", "nested deeper than 64"),
        (LAUGHS, "yaml-feature", "aliases repeat more than 100000 values"),
    ],
)
def test_what_is_not_let_in(text: str, rule: str, said: str) -> None:
    with pytest.raises(NotYamlError) as refused:
        compose(text, "a.yaml")
    assert refused.value.finding.rule == rule
    assert refused.value.finding.message.startswith(said)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "? " * 100_000, "&a [" * 5_000])
def test_depth_is_no_reason_to_fall_over(text: str) -> None:
    with pytest.raises(NotYamlError):
        compose(text, "a.yaml")


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n"])
def test_nothing_is_nothing(text: str) -> None:
    root = compose(text, "a.yaml")
    assert root is None or (isinstance(root, Word) and root.empty)
