"""State × action: who gets where in quiet words, what is unsafe or wrong in loud ones; guards and the probe."""

from __future__ import annotations

from typing import Any

from tests.site import builders
from tests.site.builders import CELLS, GUARDS, POPULATION, cell

from failure_matrix.evidence.records import Evidence
from failure_matrix.site import render
from failure_matrix.site.book import Book
from failure_matrix.site.tables import Table
from failure_matrix.site.views.lists import coverage
from failure_matrix.site.views.trials import MANY, TrialsView, trials


def seen(cells: list[dict[str, Any]]) -> Evidence:
    return builders.evidence(cells=cells, guards=GUARDS, population=POPULATION)


def view(cells: list[dict[str, Any]]) -> TrialsView:
    found = trials(Book(catalogue=builders.catalogue(), evidence=seen(cells), explain=False))
    assert found
    return found


def rows(table: Table | None) -> dict[str, list[str]]:
    assert table
    return {row.cells[0][0].text: [line.text for cell in row.cells[1:] for line in cell] for row in table.rows}


def test_a_mover_is_named_and_uniform_refusals_are_one_line() -> None:
    found = rows(view(CELLS).actions[0].table)
    seen_at = "takeover-publish, step 6"
    assert found["Taken over"] == ["current → Confirmed publication", "former and namesake: refused", seen_at]
    assert found["no row"] == ["refused", seen_at]


def test_unsafe_wrong_and_untried_have_words_of_their_own() -> None:
    found = rows(view(CELLS).actions[0].table)
    assert found["Leased"][0] == "current permitted but unsafe → Cancelled"
    assert found["Leased"][1] == "namesake → Confirmed publication * broken it must be refused"
    assert found["Leased"][2] == "former: no such caller here"
    assert found["Uncommitted materialization"][0] == "not tried: open transaction"


def test_what_is_wrong_is_listed_first_and_what_is_unsafe_too_where_cells_are_many() -> None:
    few = rows(view(CELLS).exceptions)
    assert list(few) == ["Leased"]
    assert few["Leased"][1] == "namesake"
    many = [*CELLS, *(cell("taken-over", f"caller-{number}", "refused") for number in range(MANY))]
    shown = view(many).exceptions
    assert shown
    assert [row.cells[2][0].text for row in shown.rows] == ["namesake", "current"]


def test_guards_say_who_noticed_and_assignments_are_a_list_of_their_own() -> None:
    action = view(CELLS).actions[0]
    assert rows(action.guards) == {
        "epoch = :epoch": ["noticed", "scenario takeover-publish, step 9: 1 row, expected 0"],
        "owner = :owner": ["missed * broken", ""],
    }
    assert list(rows(action.assignments)) == ["sha256 = :digest"]


def test_coverage_counts_them_and_shows_the_smallest_hole() -> None:
    sections = {
        each.anchor: each
        for each in coverage(Book(catalogue=builders.catalogue(), evidence=seen(CELLS), explain=False))
    }
    counts = rows(sections["proven"].table)
    assert counts["Cells"][:2] == ["6", "7"]
    assert counts["Guards"][:2] == ["1", "2"]
    assert list(rows(sections["guards"].table)) == ["owner = :owner in Publish"]
    hole = rows(sections["population"].table)["job"][-1]
    assert hole == "Ready 3; the smallest that is not: job.epoch 0, job.owner NULL"
    assert rows(sections["not-tried"].table) == {"open transaction": ["1", "Uncommitted materialization"]}
    assert rows(sections["cells"].table).keys() == {"Publish by namesake: 1 cell, in Leased"}
    assert counts["Cells"][-1] == "1"


def test_the_page_is_there_where_something_was_tried_and_only_there() -> None:
    made = builders.catalogue()
    assert "actions.html" in render(made, seen(CELLS))
    assert "actions.html" not in render(made, builders.evidence())
