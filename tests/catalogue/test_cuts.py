"""What YAML cuts off is found; a comment that is only a comment is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from failure_matrix.catalogue.findings import Finding

Examine = Callable[..., tuple[Finding, ...]]

STEP = """\
scenarios:
  one:
    title: One
    steps:
      - in: A
        sql: {}
"""
OWNER = "owners:\n  team:\n    title: {}\n"


def cuts(found: tuple[Finding, ...]) -> list[str]:
    return [f"{one.place}: {one.message}" for one in found if one.rule == "cut-scalar"]


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        (OWNER.format("ask in #export"), "a.yaml:4:19: '#export' is a comment and cuts 'ask in'"),
        (OWNER.format("#export on call"), "a.yaml:4:12: '#export on call' is a comment, the value is null"),
        (OWNER.format('the note says "issue # 5"'), "a.yaml:4:33: '# 5\"' is a comment and cuts"),
        (OWNER.format("the team (room # 5)"), "a.yaml:4:27: '# 5)' is a comment and cuts"),
        (OWNER.format("two\n      lines #5"), "a.yaml:5:13: '#5' is a comment and cuts 'two lines'"),
        (STEP.format("SELECT data #>> '{a}'"), "a.yaml:7:26: '#>> '{a}'' is a comment and cuts 'SELECT data'"),
        (STEP.format("SELECT a  #- 1"), "a.yaml:7:24: '#- 1' is a comment and cuts 'SELECT a'"),
        (STEP.format("SELECT 'issue # 5'"), "a.yaml:7:28: '# 5'' is a comment and cuts"),
        (STEP.format("SELECT a # b = 3"), "a.yaml:7:23: '# b = 3' is a comment and cuts 'SELECT a'"),
        (STEP.format("#x"), "a.yaml:7:14: '#x' is a comment, the value is null"),
        (
            STEP.format(">\n          SELECT 1 -- one\n          , 2"),
            "a.yaml:7:14: a '--' comment in folded text hides",
        ),
        (STEP.format("SELECT 1 -- one\n          , 2"), "a.yaml:7:14: a '--' comment in folded text hides"),
        ("owners: {team: {title: The team, reach: on call, always}}", "a.yaml:2:50: 'always' looks like the rest of"),
        ("owners: {team: {title: The team, of two: people}}", "a.yaml:2:34: 'of two' looks like the rest of"),
        ("owners: {team: {title: 'The team', at night}}", "a.yaml:2:36: 'at night' has no value"),
        ("callers: {a: {owner: A, epoch}}", "a.yaml:2:25: 'epoch' looks like the rest of 'A'"),
        (
            "catalogue: {title: T, schema: [CREATE TABLE a (b int, c int)]}",
            "a.yaml:1:32: SQL ends early: 'CREATE TABLE",
        ),
        (
            "scenarios: {a: {title: A, steps: [{in: A, sql: SELECT a, b FROM t}]}}",
            "a.yaml:2:58: 'b FROM t' looks like the rest of 'SELECT a'",
        ),
    ],
)
def test_a_cut_is_found_where_it_is(examine: Examine, yaml: str, said: str) -> None:
    found = cuts(examine(yaml))
    assert len(found) == 1
    assert found[0].startswith(said)


@pytest.mark.parametrize(
    "yaml",
    [
        OWNER.format("The team # on call"),
        OWNER.format("The team  #on call"),
        OWNER.format("The team\t# on call"),
        OWNER.format("The team #"),
        OWNER.format("The team's # the apostrophe is none"),
        OWNER.format("C# team"),
        OWNER.format('"ask in #export"'),
        OWNER.format("'#export'"),
        OWNER.format("|\n      ask in #export"),
        "owners:\n  team:\n    title: The team\n    reach: # nobody yet\n",
        "owners:\n  team:\n    title: The team\n    reach: null # nobody yet\n",
        "owners:\n  team: #the only one\n    title: The team\n",
        "owners: {team: {title: The team, reach: null}} # nobody, yet",
        STEP.format("SELECT 1 # one"),
        STEP.format("SELECT 1  # one = 1"),
        STEP.format("|\n          SELECT data #>> '{a}' -- one\n          FROM t"),
        STEP.format("SELECT 1 -- one"),
        STEP.format(">\n          SELECT 1,\n          2 -- two"),
        STEP.format("'SELECT a, b'"),
        "scenarios: {a: {title: A, shows: [first, then second], steps: [{in: A, sql: SELECT 1}]}}",
    ],
)
def test_an_honest_comment_is_none(examine: Examine, yaml: str) -> None:
    assert examine(yaml) == ()
