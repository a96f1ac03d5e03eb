"""A scenario's page: sessions side by side, waits that span, bands of the world, what did not run."""

from __future__ import annotations

import re
from typing import Any

from tests.site import builders

from failure_matrix.evidence.records import Evidence
from failure_matrix.site import render
from failure_matrix.site.book import Book
from failure_matrix.site.views.scenario import ScenarioView, scenario
from failure_matrix.site.views.transcript import GridCell, GridRow, Transcript


def view(record: dict[str, Any]) -> ScenarioView:
    plain = builders.plain(builders.catalogue()) | {"scenarios": [record]}
    book = Book(catalogue=builders.catalogue(), evidence=Evidence.model_validate(plain), explain=False)
    return scenario(book, record["id"])


def grid(record: dict[str, Any]) -> Transcript:
    found = view(record).transcript
    assert found
    return found


def kinds(row: GridRow) -> list[str]:
    return [cell.kind for cell in row.cells]


def texts(cell: GridCell) -> list[str]:
    return [each.text for each in (*cell.lines, *cell.last)]


TAKEOVER = grid(builders.takeover_publish())


def test_sessions_stand_in_their_order_with_their_titles() -> None:
    assert TAKEOVER.sessions == (("A", "first worker, epoch 1"), ("B", "second worker, epoch 2"))


def test_a_step_is_in_the_column_of_its_session() -> None:
    assert kinds(TAKEOVER.rows[1]) == ["step", "empty"]
    assert texts(TAKEOVER.rows[1].cells[0]) == ["do acquire → 1 row", "id 1, owner A"]


def test_a_step_of_the_world_is_a_band() -> None:
    (band,) = TAKEOVER.rows[2].cells
    assert (band.kind, band.columns) == ("band", 2)
    assert texts(band) == ["clock 0 → 10, event lease-expires"]
    assert texts(TAKEOVER.rows[8].cells[0]) == ["event artifact-lost remove candidate/1-2.csv"]


def test_a_wait_spans_to_its_release() -> None:
    wait = TAKEOVER.rows[5].cells[0]
    assert (wait.kind, wait.rows) == ("wait", 2)
    assert texts(wait) == ["do publish → waits for B", "step 6 releases it → 0 rows"]
    assert [cell.session for cell in TAKEOVER.rows[6].cells] == [1]
    assert texts(TAKEOVER.rows[6].cells[0]) == ["sql COMMIT → ok, releases step 5"]


def test_a_band_goes_round_a_wait() -> None:
    record = builders.whole(builders.takeover_publish())
    steps = record["steps"]
    steps[4]["released_by"] = 7
    steps[5] = builders.step(6, None, "event", "artifact-lost", text="")
    steps[6] = builders.step(7, "B", "sql", text="COMMIT", releases=[5])
    rows = grid(record).rows
    assert [(cell.kind, cell.session, cell.columns) for cell in rows[6].cells] == [("band", 1, 1)]


def test_every_row_fills_every_column() -> None:
    covered = [0, 0]
    for row in TAKEOVER.rows:
        filled = [max(0, left) > 0 for left in covered]
        for cell in row.cells:
            for column in range(cell.session, cell.session + cell.columns):
                assert not filled[column], row.number
                filled[column] = True
                covered[column] = cell.rows
        assert all(filled), row.number
        covered = [left - 1 for left in covered]


def test_what_is_committed_is_said_once() -> None:
    said = [[phrase.text for phrase in row.committed] for row in TAKEOVER.rows]
    assert said[0] == ["job 1 Ready"]
    assert said[1] == ["job 1 Ready → Leased"]
    assert said[3] == ["same"]
    assert said[4] == ["same: not committed yet"]
    assert said[6] == ["job 1 Expired → Taken over"]


def test_what_one_session_sees_is_in_its_cell() -> None:
    assert texts(TAKEOVER.rows[4].cells[1]) == ["do take-over → 1 row", "B sees job 1 Taken over"]


def test_a_broken_step_says_what_was_expected() -> None:
    assert texts(TAKEOVER.rows[9].cells[0])[1] == "A did republish; expected 0 rows, seen 1 row (matrix/job.yaml:112)"
    head = view(builders.takeover_publish()).head
    assert head.stopped.text.startswith("Broken at step 9: A did republish; expected 0 rows, seen 1 row")


def test_steps_that_did_not_run_are_listed() -> None:
    assert TAKEOVER.not_run == "Steps 10 to 11 did not run: the scenario ended before."
    assert grid(builders.takeover_publish() | {"not_run": [11]}).not_run.startswith("Step 11 did not run")
    assert grid(builders.acquire_once()).not_run == ""


def test_values_errors_and_notices_are_shown() -> None:
    record = builders.acquire_once()
    error = {"severity": "ERROR", "sqlstate": "23505", "message": "duplicate key", "constraint": "job_pkey"}
    query = "SELECT id, -- a remark\n owner FROM job"
    answer = {"columns": ["id", "owner"], "rows": [["1", None], ["2", "x"], ["3", "y"]]}
    record["steps"] = [
        builders.step(1, "A", "sql", text=query, rows=3, returns=answer, notices=["mind"]),
        builders.step(2, "A", "sql", text="INSERT", error=error),
    ]
    rows = grid(record).rows
    assert texts(rows[1].cells[0]) == [
        "sql SELECT id, owner FROM job → 3 rows: id 1, owner NULL; id 2, owner x; and 1 more, notice: mind"
    ]
    assert texts(rows[2].cells[0]) == ["sql INSERT → error 23505 duplicate key"]


def test_a_stay_a_late_move_and_many_moves() -> None:
    record = builders.acquire_once()
    (stay,) = builders.move("leased", "leased", "heartbeat")["moves"]
    (late,) = builders.move("leased", "expired", "take-over")["moves"]
    (move,) = builders.move("ready", "leased", "acquire")["moves"]
    late |= {"late": True, "by": ["take-over", "lease-expires"]}
    found = ([stay], [late], [move | {"key": [str(key)]} for key in range(9)])
    record["steps"] = [builders.step(n, "A", "do", "acquire", rows=1, moves=moves) for n, moves in enumerate(found, 1)]
    said = [[phrase.text for phrase in row.committed] for row in grid(record).rows]
    assert said[1] == ["job 1 stays Leased"]
    assert said[2] == ["job 1 Leased → Expired (late, by take-over and lease-expires)"]
    assert said[3][-1] == "and 3 more"


def test_an_order_that_fails_is_shown_step_by_step() -> None:
    record = builders.takeover_publish()
    by_number = {step["number"]: step for step in record["steps"]}
    waits, frees = by_number[5] | {"released_by": 4}, by_number[4] | {"releases": [5]}
    order = {"steps": [by_number[3], waits, by_number[2], frees, by_number[9]], "failures": []}
    record["orders"] |= {"failing": order, "failed": 3}
    (shown,) = view(record).orders
    assert shown.text.text == "Steps 3, 5, 2, 4, 9; one of 3 such orders."
    assert [row.number for row in shown.transcript.rows] == [3, 5, 2, 4, 9]
    assert shown.transcript.rows[1].anchor == "failing-5"
    wait = shown.transcript.rows[1].cells[0]
    assert (wait.kind, wait.rows) == ("wait", 3)
    assert [(cell.kind, cell.session) for cell in shown.transcript.rows[2].cells] == [("band", 1)]


def test_a_step_of_the_world_is_told_even_where_every_session_waits() -> None:
    record = builders.acquire_once()
    record["steps"] = [
        builders.step(1, "A", "sql", text="SELECT 1", waits=["B"], released_by=3),
        builders.step(2, None, "event", "artifact-lost", text=""),
        builders.step(3, None, "kill", text="B", releases=[1]),
    ]
    row = grid(record).rows[2]
    assert row.cells == ()
    assert [phrase.text for phrase in row.committed] == ["event artifact-lost", "same"]


def test_a_scenario_that_did_not_run_says_so() -> None:
    plain = builders.plain(builders.catalogue()) | {"scenarios": []}
    site = render(builders.catalogue(), Evidence.model_validate(plain))
    text = site["scenarios/acquire-once.md"].decode()
    assert "○ unreached" in text
    assert "Not run in this evidence; it has 2 steps." in text


def test_the_table_in_html_is_whole() -> None:
    site = render(builders.catalogue(), builders.evidence())
    text = site["scenarios/takeover-publish.html"].decode()
    for number in range(10):
        assert text.count(f'id="step-{number}"') == 1
    assert re.search(r'<td class="wait s0" rowspan="2">', text)
    assert '<tr id="step-9" class="v-broken">' in text


def test_the_table_in_markdown_has_a_line_a_step() -> None:
    site = render(builders.catalogue(), builders.evidence())
    lines = [line for line in site["scenarios/takeover-publish.md"].decode().splitlines() if re.match(r"\| \d", line)]
    assert len(lines) == 10
    assert lines[5] == "| 5 | 10 | A | do `publish` | **waits for B**, step 6 releases it; **0 rows** | same |"
    assert lines[2] == (
        "| 2 | 10 |  | **clock 0 → 10**, event lease-expires |  "
        "| job 1 [Leased](../states/leased.md) → [Expired](../states/expired.md) |"
    )
