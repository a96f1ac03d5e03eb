"""The comparison with isolationtester is fair: both run the same orders and see the same sessions wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.isolation import Disagreement, IsolationTester, Order, Runner, as_spec, compare, possible, printed

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.cli.main import main
from failure_matrix.database import hosting
from failure_matrix.database.cluster import Server

ROOT = Path(__file__).parents[2]
PREFIX = hosting.installation(None).prefix


def test_what_is_measured_can_be_exported_by_anybody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["export", "spec", "--catalogue", str(ROOT / "benchmarks/catalogue"), "--into", str(tmp_path)])
    assert code == 0, capsys.readouterr().err
    assert len(list(tmp_path.glob("*.spec"))) == len(load(ROOT / "benchmarks/catalogue").scenarios)


OUTPUT = """\
Parsed test spec with 3 sessions

starting permutation: s1_begin s2_take s4_take s3_sql s5_sql
step s1_begin: BEGIN
step s2_take:
UPDATE job SET state = 'step s9_x: no'

step s4_take: UPDATE job <waiting ...>
step s3_sql: COMMIT
step s4_take: <... completed>
step s5_sql: SELECT 1
?column?
--------
       1
(1 row)


starting permutation: s4_take s1_begin
step s4_take: UPDATE job
ERROR:  deadlock detected
step s1_begin: BEGIN
"""


def test_what_is_printed_is_read() -> None:
    assert list(printed(OUTPUT)) == [
        Order(steps=(1, 2, 4, 3, 5), waited=frozenset({4}), freed=frozenset({(4, 3)})),
        Order(steps=(4, 1), deadlock=True),
    ]


WAITED = Order(steps=(1, 2), waited=frozenset({2}), freed=frozenset({(2, 1)}))


@pytest.mark.parametrize(
    "theirs",
    [
        [],
        [replace(WAITED, waited=frozenset())],
        [replace(WAITED, freed=frozenset())],
        [replace(WAITED, steps=(2, 1))],
        [replace(WAITED, deadlock=True)],
    ],
)
def test_a_difference_is_no_comparison(theirs: Sequence[Order]) -> None:
    compare("one", [WAITED], [WAITED])
    with pytest.raises(Disagreement, match=r"^one: "):
        compare("one", [WAITED], theirs)


def test_who_waited_in_a_deadlock_is_a_matter_of_time() -> None:
    first, second = (Order(steps=(1, 2), waited=frozenset({step}), deadlock=True) for step in (1, 2))
    compare("one", [first], [second])


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load(ROOT / "benchmarks" / "catalogue")


@pytest.mark.parametrize("tables_stay", [False, True])
@pytest.mark.parametrize("id", ["try-advisory", "serialization-failure", "advisory"])
def test_both_see_the_same(catalogue: Catalogue, server: Server, id: str, tables_stay: bool) -> None:
    ours = possible(catalogue, server, id)
    with IsolationTester(catalogue, server, PREFIX, tables_stay=tables_stay) as tester:
        compare(id, ours, list(printed(tester.run(as_spec(catalogue, id, ours, tables_stay=tables_stay)))))
    assert any(order.waited for order in ours) == (id != "try-advisory")


def test_all_orders_are_played(catalogue: Catalogue, server: Server) -> None:
    with Runner(catalogue, server, jobs=2) as runner:
        ran = [runner.run(["advisory", "try-advisory"]) for _ in range(2)]
    assert ran == 2 * [sum(len(possible(catalogue, server, id)) for id in ("advisory", "try-advisory"))]


def test_a_broken_scenario_is_no_measurement(catalogue: Catalogue, server: Server) -> None:
    claim = catalogue.actions["claim"].model_copy(update={"moves": {}})
    spoilt = catalogue.model_copy(update={"actions": {**catalogue.actions, "claim": claim}})
    with (
        Runner(spoilt, server, jobs=1) as runner,
        pytest.raises(Disagreement, match=r"^locked-then-skipped is broken: "),
    ):
        runner.run(["locked-then-skipped"])


def test_a_spec_that_is_wrong_is_no_measurement(catalogue: Catalogue, server: Server) -> None:
    with (
        IsolationTester(catalogue, server, PREFIX, tables_stay=False) as tester,
        pytest.raises(Disagreement, match="ended with"),
    ):
        tester.run("session {")
