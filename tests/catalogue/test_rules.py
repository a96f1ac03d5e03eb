"""Every rule has a page and a catalogue that breaks it; what breaks none is let be."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from failure_matrix.catalogue import rulebook
from failure_matrix.catalogue.findings import CatalogueInvalid, Finding, Severity
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.rules import check
from failure_matrix.catalogue.rules.columns import selected

Examine = Callable[..., tuple[Finding, ...]]

ROOT = Path(__file__).parents[2]
BROKEN = ROOT / "tests" / "catalogues" / "broken"
STATIC = [rule for rule in rulebook.rule_ids() if rulebook.rule(rule).found_by == "static"]


def test_every_static_rule_has_a_broken_catalogue() -> None:
    assert sorted(path.name for path in BROKEN.iterdir() if rulebook.rule(path.name).found_by == "static") == STATIC


@pytest.mark.parametrize("rule", STATIC)
def test_a_broken_catalogue_gives_exactly_its_findings(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN / rule)
    try:
        found = check(load(Path()))
    except CatalogueInvalid as invalid:
        found = invalid.findings
    assert "".join(f"{one.severity}: {one}\n" for one in found) == Path("expected.txt").read_text(encoding="utf-8")
    assert {one.rule for one in found} == {rule}
    assert {one.severity for one in found} == {rulebook.rule(rule).severity}


@pytest.mark.parametrize("rule", rulebook.rule_ids())
def test_a_page_says_what_is_asked_why_and_how_to_mend_it(rule: str) -> None:
    known = rulebook.rule(rule)
    assert known.found_by in ("static", "server")
    assert re.search(r"\n## Why\n\n\S.*\n\n## How to mend\n\n\S", known.page, re.DOTALL)
    assert known.asks.endswith(".")
    assert len(known.asks) <= 120


def test_the_index_of_rules_is_complete() -> None:
    """``docs/rules/README.md`` is written by hand nowhere: it is this table."""
    lines = ["| rule | | asks |", "| --- | --- | --- |"]
    for rule in map(rulebook.rule, rulebook.rule_ids()):
        page = f"../../src/failure_matrix/catalogue/rule_pages/{rule.id}.md"
        lines.append(f"| [{rule.id}]({page}) | {rule.severity} · {rule.found_by} | {rule.asks} |")
    index = (ROOT / "docs" / "rules" / "README.md").read_text(encoding="utf-8")
    assert "\n".join(lines) in index


def test_an_unknown_rule_has_no_page() -> None:
    with pytest.raises(KeyError):
        rulebook.rule("no-such-rule")


def test_a_finding_stays_on_one_line_of_bearable_length(examine: Examine) -> None:
    (found,) = examine('scenarios: {a: {title: A, steps: [], after: "b-\\n\\e[31m' + "x" * 10_000 + '"}}\n')
    assert str(found).count("\n") == 1
    assert "'b-\\n\\x1b[31mxxx" in found.message
    assert len(found.message) == rulebook.LONGEST


def test_the_shipped_catalogue_breaks_no_rule() -> None:
    assert check(load(ROOT / "matrix")) == ()


SCENE = """\
subjects:
  job: {key: {id: job.id}, offers: {job: job.id}, from: job, show: [job.state]}
stores: {file: {directory: files}}
callers:
  fixed: {owner: A}
  row: SELECT owner, j.epoch, format('%s', id) AS "name" FROM job AS j WHERE id = :job
  any: SELECT * FROM job
actions:
  take:
    subject: job
    title: Take
    with: {ttl: 10}
    sql: UPDATE job SET owner = :owner, until = :now + :ttl WHERE id = :id
  name:
    subject: job
    title: Name
    requires: :name <> ''
    sql: UPDATE job SET name = :name WHERE id = :id AND epoch = :epoch
    store: {create: "file/$name", content: $content}
events:
  expires: {title: It expires, at: job.until <= :now}
  dies: {title: It dies, kill: true}
  lost: {title: A file is lost, store: {remove: "file/$name"}}
  done: {title: Done, sql: UPDATE job SET done = :done, with: {done: true}}
scenarios:
  one:
    title: One
    given: {job: [{id: 1}]}
    steps:
"""


@pytest.mark.parametrize(
    "steps",
    [
        ["{in: A, do: take, with: {id: 1, owner: A}}"],
        ["{in: A, do: take, as: fixed, with: {id: 1}}"],
        ["{in: A, do: name, as: row, with: {id: 1, content: x}}"],
        ["{in: A, do: name, as: any, with: {id: 1}}"],
        ["{in: A, sql: 'SELECT 1 AS x', keep: {content: x}}", "{in: A, do: name, as: row, with: {id: 1}}"],
        ["{at: 10, event: expires}", "{at: 10}"],
        ["{in: A, sql: BEGIN}", "{kill: A, event: dies}", "{in: A, sql: 'SELECT 1', event: lost, with: {name: a}}"],
        ["{event: lost, with: {name: a}}", "{event: done}", "{in: A, event: done}"],
        ["{in: A, sql: 'SELECT :a, :now', with: {a: '$$a costs $5 $$$$'}}"],
        ["{in: A, sql: 'SELECT $1', with: {1: x}}", "{in: A, sql: {text: 'SELECT $1', params: numeric}, with: {1: x}}"],
        ["{in: A, sql: 'SELECT 1 AS x', keep: {x: x}}", "{in: A, sql: 'SELECT 2', returns: [[$x]], notice: a $x}"],
        ["{in: A, sql: 'SELECT 1 AS x', keep: {x: x}}", "{in: A, sql: 'SELECT 2', then: {job: {$x: $x}}}"],
        ["{in: A, sql: 'SELECT 1'}", "{in: B, sql: 'SELECT 1', waits: A}", "{in: A, sql: COMMIT, releases: B}"],
        ["{in: A, sql: 'SELECT 1', with: {x: $now}, breaks: ambiguous}"],
        ["{at: 0}", "{at: 1}", "{at: 1}", "{at: 2030-01-01}"],
    ],
)
def test_what_fits_together_is_let_be(examine: Examine, steps: list[str]) -> None:
    found = examine(SCENE + "".join(f"      - {step}\n" for step in steps))
    assert [str(one) for one in found if one.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("{in: A, do: take, with: {id: 1}}", "gives no value for ':owner', which action 'take' needs"),
        ("{in: A, do: name, as: fixed, with: {id: 1, epoch: 1}}", "':name', which action 'name' needs"),
        ("{in: A, do: name, as: row, with: {content: x}}", "':job', which caller 'row' needs"),
        ("{in: A, do: name, as: row, with: {id: 1}}", "':content', which action 'name' needs"),
        ("{in: A, sql: 'SELECT :a'}", "':a', which 'sql' of step 1 of scenario 'one' needs"),
        ("{event: lost}", "':name', which event 'lost' needs"),
        ("{in: A, sql: 'SELECT 1', then: {job: {$x: absent}}}", "uses '$x', which no earlier step keeps"),
        ("{in: A, sql: 'SELECT 1', then: {job: {1: $x}}}", "uses '$x', which no earlier step keeps"),
        ("{in: A, sql: 'SELECT 1', seen_by: {A: {job: {'a $x': absent}}}}", "uses '$x', which no earlier step keeps"),
        ("{in: A, sql: 'SELECT 1', keep: {x: y}, notice: $x}", "uses '$x', which no earlier step keeps"),
        ("{at: $x}", "uses '$x', which no earlier step keeps"),
        ("{in: A, sql: 'SELECT 1', results: [[[a, $x]], 1]}", "uses '$x', which no earlier step keeps"),
    ],
)
def test_what_has_no_source_is_found(examine: Examine, step: str, said: str) -> None:
    found = [one.message for one in examine(SCENE + f"      - {step}\n") if one.severity is Severity.ERROR]
    assert any(said in message for message in found)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('SELECT a, b.c, d + 1 AS "E", count(*) AS n FROM t', {"a", "c", "E", "n"}),
        ("select 1 as a where true", {"a"}),
        ("SELECT a, f(x, y) AS b UNION SELECT 1, 2", {"a", "b"}),
        ("SELECT (SELECT x FROM y) AS a FROM z", {"a"}),
        ("SELECT a::int FROM t", None),
        ("SELECT a b FROM t", None),
        ("SELECT * FROM t", None),
        ("SELECT t.* FROM t", None),
        ("WITH t AS (SELECT 1 AS a) SELECT a FROM t", None),
        ("SELECT", None),
        ("", None),
    ],
)
def test_columns_of_a_select(text: str, columns: set[str] | None) -> None:
    assert selected(text) == columns


STATES = """\
subjects: {{job: {{key: {{id: job.id}}, from: job}}}}
states:
  a: {{subject: job, title: A, when: x}}
  b: {{subject: job, title: B, when: x, final: true}}
  c: {{subject: job, title: C, when: x, {c}}}
actions:
  go: {{subject: job, title: Go, sql: SELECT 1, moves: {moves}, also: {also}}}
scenarios:
  one: {{title: One, given: {given}, steps: [{step}]}}
"""
GO = "{in: A, do: go}"


@pytest.mark.parametrize(
    ("parts", "unreachable", "traps"),
    [
        ({"moves": "{absent: a, a: [b, c]}"}, [], []),
        ({"moves": "{a: b}"}, ["a", "b", "c"], []),
        ({"moves": "{a: b}", "given": "{job: [{}]}", "step": GO}, ["c"], []),
        ({"moves": "{a: b}", "given": "{job: [{}]}"}, ["a", "b", "c"], []),
        ({"moves": "{a: b}", "step": "{in: A, sql: SELECT 1, then: {job: {1: a, 2: c}}}"}, [], []),
        ({"moves": "{absent: a, a: b}", "c": "illegal: true"}, [], []),
        ({"moves": "{absent: [a, c], a: b, c: c}", "c": "about: x"}, [], ["c"]),
        ({"moves": "{absent: a, a: $to}"}, [], []),
        ({"moves": "{absent: a}", "also": "{a: c, c: b}", "c": "about: x"}, [], []),
        ({"moves": "{}", "c": "about: x"}, [], []),
    ],
)
def test_ways_in_and_out(examine: Examine, parts: dict[str, str], unreachable: list[str], traps: list[str]) -> None:
    filled = {"c": "final: true", "also": "{}", "given": "{}", "step": "", **parts}
    found = examine(STATES.format(**filled))
    assert [one.message.split("'")[1] for one in found if one.rule == "unreachable-state"] == unreachable
    assert [one.message.split("'")[1] for one in found if one.rule == "trap"] == traps


@pytest.mark.parametrize("when", ["true) OR (true", "ARRAY[1)] IS NULL AND (true", ")("])
def test_a_predicate_cannot_close_what_it_is_put_into(when: str, examine: Examine) -> None:
    found = examine(
        f"""\
        subjects: {{job: {{key: {{id: job.id}}, from: job}}}}
        states: {{one: {{subject: job, title: One, when: "{when}"}}}}
        """
    )
    assert [one.message for one in found if one.rule == "unfinished-sql"] == [
        "'when' of state 'one' does not close a bracket"
    ]
