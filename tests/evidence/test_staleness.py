"""Older evidence against a catalogue that has changed since."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence import staleness
from failure_matrix.evidence.records import Evidence, Verdict
from failure_matrix.evidence.renewal import NEW
from failure_matrix.verify import verify

TEXT = """
catalogue:
  title: Two tables
  schema:
    - |
      CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL CHECK (state IN ('ready', 'done', 'held')));
      CREATE TABLE note (id bigint PRIMARY KEY, text text NOT NULL CHECK (text <> ''));
      CREATE TABLE asked (id bigint CHECK (id > 0)); CREATE TABLE needed (id bigint CHECK (id > 0));
      CREATE TABLE looked (id bigint CHECK (id > 0)); CREATE TABLE spare ();
    - SELECT set_config('a.b', 'c', false)
subjects:
  job: {key: {id: job.id}, spare: {id: 9}, offers: {of: job.state}, from: job, show: [job.state]}
  note: {key: {note: note.id}, from: note, spare: {note: 9}}
states:
  ready:
    subject: job
    title: Ready
    when: job.state = 'ready'
    observe:
      - {see: nothing to run}
      - see: it is ready
        sql: SELECT 1 FROM job WHERE id = :id AND state = 'ready' AND NOT EXISTS (SELECT FROM looked)
    retention: {keep: for ever, cost: "SELECT count(*), 'rows' FROM job"}
  held: {subject: job, title: Held, when: job.state = 'held'}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
  written: {subject: note, title: Written, when: note.id > 0, final: true}
  nowhere: {subject: note, title: Nowhere, when: note.id < 0, illegal: true}
callers:
  worker: {worker: w}
  visitor: {}
actions:
  finish:
    subject: job
    title: Finish
    requires: NOT EXISTS (SELECT FROM needed)
    sql: UPDATE job SET state = 'done' WHERE id = :id AND state = 'ready'
    moves: {ready: done}
    refusal: {ask: "SELECT count(*) FROM asked"}
  hold:
    subject: job
    title: Hold
    sql: UPDATE job SET state = 'held' WHERE id = :id AND state = 'ready'
    moves: {ready: held}
  note:
    subject: note
    title: Write a note
    sql: INSERT INTO note SELECT :note, :worker
    moves: {absent: written}
    refusal: {looks: {error: "23505"}}
scenarios:
  finish-once:
    title: A job is finished once
    given: {job: [{id: 1, state: ready}], note: [{id: 1, text: x}]}
    steps:
      - {in: A, do: finish, with: {id: 1}, rows: 1}
      - {in: A, do: finish, with: {id: 1}, rows: 0}
  hold-once:
    title: A job is held once
    given: {job: [{id: 1, state: ready}]}
    steps:
      - {in: A, do: hold, with: {id: 1}, rows: 1}
      - {in: A, sql: SELECT 1 AS answer, returns: [{answer: 1}]}
  hold-again:
    title: A job is held, and nobody asks further
    given: {job: [{id: 1, state: ready}]}
    steps:
      - {in: A, do: hold, with: {id: 1}, rows: 1}
  a-note:
    title: A note is written
    steps:
      - {in: A, do: note, with: {note: 2, worker: w}, rows: 1}
invariants:
  few: {title: Few jobs, sql: SELECT id FROM job WHERE id > 100}
"""


TODAY = date(2026, 6, 1)


def against(evidence: Evidence, catalogue: Catalogue) -> Evidence:
    return staleness.against(evidence, catalogue, TODAY)


@pytest.fixture(scope="module")
def evidence(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return verify(_load(tmp_path_factory.mktemp("then"), TEXT), server)


def _load(directory: Path, text: str) -> Catalogue:
    (directory / "matrix.yaml").write_text(text)
    return load(directory)


def _changed(directory: Path, old: str, new: str) -> Catalogue:
    assert TEXT.count(old) == 1
    return _load(directory, TEXT.replace(old, new))


def _not_verified(evidence: Evidence) -> dict[str, str | None]:
    return {state.id: state.because for state in evidence.states if state.verdict is not Verdict.VERIFIED}


def test_nothing_changed(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _load(tmp_path, TEXT))
    assert today.verdict is Verdict.VERIFIED
    assert today == evidence


def test_comments_and_white_space_change_nothing(evidence: Evidence, tmp_path: Path) -> None:
    catalogue = _changed(tmp_path, "when: job.state = 'held'", "when: \"job.state   = /* still */ 'held'\"")
    assert against(evidence, catalogue).verdict is Verdict.VERIFIED


def test_prose_changes_nothing(evidence: Evidence, tmp_path: Path) -> None:
    catalogue = _changed(tmp_path, "title: Held, when", "title: Held back, when")
    assert against(evidence, catalogue).verdict is Verdict.VERIFIED


def test_a_predicate_makes_its_state_stale_and_only_that_one(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "when: job.state = 'held'", "when: job.state IN ('held')"))
    assert _not_verified(today) == {"held": "changed since: state held"}
    assert today.verdict is Verdict.STALE


def test_a_check_dropped_makes_stale_what_rests_on_its_table(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, " CHECK (state IN ('ready', 'done', 'held'))", ""))
    assert _not_verified(today) == dict.fromkeys(("ready", "held", "done"), "changed since: schema job")


def test_an_action_makes_stale_the_states_that_it_joins(evidence: Evidence, tmp_path: Path) -> None:
    held = "UPDATE job SET state = 'held' WHERE "
    today = against(evidence, _changed(tmp_path, f"{held}id = :id", f"{held}:id = id"))
    whether = "as worker: changed since: action hold"  # nobody knows what it does to a job that is done
    assert _not_verified(today) == {
        **dict.fromkeys(("ready", "held"), "changed since: action hold"),
        "done": f"hold {whether}",
    }
    stale = [(move.from_, move.by) for move in today.moves if move.verdict is Verdict.STALE]
    assert stale == [("ready", "hold")]


def test_a_caller_makes_stale_what_it_was_tried_in(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "worker: {worker: w}", "worker: {worker: v}"))
    stale = {(cell.action, cell.caller) for cell in today.cells if cell.verdict is Verdict.STALE}
    assert {caller for _, caller in stale} == {"worker"}
    assert _not_verified(today)["written"] == "note as worker: changed since: caller worker"


def test_a_new_caller_has_not_been_tried(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "  visitor: {}\n", "  visitor: {}\n  thief: {worker: t}\n"))
    new = [cell for cell in today.cells if cell.because == NEW]
    assert {cell.caller for cell in new} == {"thief"}
    assert {cell.verdict for cell in new} == {Verdict.UNREACHED}
    assert _not_verified(today)["ready"] == f"finish as thief: {NEW}"
    assert today.coverage["cells"].of == evidence.coverage["cells"].of + len(new)


def test_a_new_action_is_told_as_new(evidence: Evidence, tmp_path: Path) -> None:
    more = "  drop: {subject: job, title: Drop, sql: DELETE FROM job WHERE id = :id, moves: {held: absent}}\n"
    note = "  note:\n    subject"
    today = against(evidence, _changed(tmp_path, note, more + note))
    assert _not_verified(today)["held"] == "changed since: action drop (new)"
    assert ("held", "drop", NEW) in {(move.from_, move.by, move.because) for move in today.moves}
    assert [guard.because for guard in today.guards if guard.action == "drop"] == [NEW]


def test_a_new_invariant_was_never_asked(evidence: Evidence, tmp_path: Path) -> None:
    more = "invariants:\n  none: {title: None, sql: SELECT id FROM note WHERE id > 100}\n"
    today = against(evidence, _changed(tmp_path, "invariants:\n", more))
    assert {record.id: record.verdict for record in today.invariants} == {
        "none": Verdict.UNREACHED, "few": Verdict.VERIFIED,
    }  # fmt: skip


def test_a_cost_is_what_was_measured(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "SELECT count(*), 'rows'", "SELECT count(*) * 2, 'rows'"))
    assert _not_verified(today) == {"ready": "changed since: observation ready cost"}


def test_one_scenario_as_it_was_is_enough(evidence: Evidence, tmp_path: Path) -> None:
    """What one scenario asks besides makes nothing stale that another one shows."""
    today = against(evidence, _changed(tmp_path, "SELECT 1 AS answer, returns", "SELECT 2 - 1 AS answer, returns"))
    assert _not_verified(today) == {}
    assert [record.id for record in today.scenarios if record.verdict is Verdict.STALE] == ["hold-once"]
    assert {move.verdict for move in today.moves} == {Verdict.VERIFIED}


def test_a_guard_is_as_old_as_who_noticed(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "finish, with: {id: 1}, rows: 0", "finish, with: {id: 2}, rows: 0"))
    stale = [(guard.action, guard.guard) for guard in today.guards if guard.verdict is Verdict.STALE]
    assert stale == [("finish", "state = 'ready'")]


OF_ACTIONS = {"scenarios", "moves", "cells", "guards", "states"}


def _stale(evidence: Evidence) -> dict[str, int]:
    kinds = ("scenarios", "moves", "cells", "guards", "population", "observations", "invariants", "states")
    found = {kind: sum(r.verdict is Verdict.STALE for r in getattr(evidence, kind)) for kind in kinds}
    return {kind: number for kind, number in found.items() if number}


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("offers: {of: job.state}", "offers: {of: job.id}", {"cells", "guards", "observations", "states"}),
        ("spare: {id: 9}, offers", "spare: {id: 8}, offers", {"cells", "guards", "observations", "states"}),
        ("asked (id bigint CHECK (id > 0))", "asked (id bigint)", {"cells", "states"}),
        (
            "needed (id bigint CHECK (id > 0))",
            "needed (id bigint)",
            OF_ACTIONS,
        ),
        ("looked (id bigint CHECK (id > 0))", "looked (id bigint)", {"observations", "states"}),
        (" CREATE TABLE spare ();", "", set()),
        (
            "    - SELECT set_config('a.b', 'c', false)\n",
            "",
            {"scenarios", "moves", "cells", "guards", "observations", "invariants", "states"},
        ),
        (
            "catalogue:\n",
            "catalogue:\n  clock: wall\n",
            {"scenarios", "moves", "cells", "guards", "observations", "invariants", "states"},
        ),
    ],
)
def test_what_rests_on_a_change_is_stale_and_nothing_else(
    evidence: Evidence, tmp_path: Path, old: str, new: str, stale: set[str]
) -> None:
    assert _stale(against(evidence, _changed(tmp_path, old, new))).keys() == stale


def test_a_table_that_is_gone_leaves_nothing_verified_that_names_it(evidence: Evidence, tmp_path: Path) -> None:
    gone = "      CREATE TABLE note (id bigint PRIMARY KEY, text text NOT NULL CHECK (text <> ''));\n"
    today = against(evidence, _changed(tmp_path, gone, ""))
    assert [record.id for record in today.scenarios if record.verdict is Verdict.STALE] == ["finish-once", "a-note"]
    assert {cell.verdict for cell in today.cells if cell.action == "note"} <= {Verdict.STALE, None}
    assert _not_verified(today)["written"] == "changed since: schema note (gone)"


def test_a_cell_is_stale_by_where_it_leads_to_and_its_state_is_not(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "when: job.state = 'held'", "when: job.state IN ('held')"))
    cell = next(each for each in today.cells if (each.state, each.action, each.caller) == ("ready", "hold", "worker"))
    assert (cell.to, cell.verdict, cell.because) == (("held",), Verdict.STALE, "changed since: state held")
    assert _not_verified(today).keys() == {"held"}


def test_an_observation_goes_by_its_place_and_its_sql(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "      - {see: nothing to run}\n", ""))
    first, cost = (each for each in today.observations if each.state == "ready")
    assert (first.observation, first.verdict, first.because) == (0, Verdict.UNREACHED, NEW)
    assert cost.verdict is Verdict.VERIFIED


def test_what_is_hidden_by_now_is_not_rendered(evidence: Evidence, tmp_path: Path) -> None:
    hiding = _changed(tmp_path, "from: job, show: [job.state]", "from: job, show: [job.state], hide: [job.state]")
    with pytest.raises(CouldNot, match="made before it was hidden what stands in state"):
        against(evidence, hiding)


WAIVED = """
waivers:
  w: {of: move written forget absent, owner: team, because: nobody forgets, until: 2026-12-31}
owners: {team: {title: The team}}
actions:
  forget: {subject: note, title: Forget, sql: DELETE FROM note WHERE id = :note AND false, moves: {written: absent}}
"""


@pytest.fixture(scope="module")
def waived(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return verify(_waiving(tmp_path_factory.mktemp("waived"), WAIVED), server)


def _waiving(directory: Path, text: str) -> Catalogue:
    (directory / "waived.yaml").write_text(text)
    return _load(directory, TEXT)


def _forgotten(evidence: Evidence) -> list[tuple[Verdict, str | None]]:
    move = next(each for each in evidence.moves if each.by == "forget")
    state = next(each for each in evidence.states if each.id == "written")
    return [(move.verdict, move.because), (state.verdict, state.because)]


def test_a_waiver_that_stands_still_waives(waived: Evidence, tmp_path: Path) -> None:
    today = against(waived, _waiving(tmp_path, WAIVED))
    assert _forgotten(today)[0] == (Verdict.WAIVED, "until 2026-12-31: nobody forgets")
    assert today.waivers == waived.waivers


def test_a_waiver_that_is_over_or_gone_waives_nothing(waived: Evidence, tmp_path: Path) -> None:
    over = staleness.against(waived, _waiving(tmp_path, WAIVED), date(2027, 1, 1))
    assert _forgotten(over)[0] == (Verdict.STALE, "it was waived until 2026-12-31")
    assert [each.verdict for each in over.waivers] == [Verdict.BROKEN]
    none = against(waived, _waiving(tmp_path, WAIVED[: WAIVED.index("waivers:")] + WAIVED[WAIVED.index("owners:") :]))
    told = "it was waived, and the waiver is gone"
    assert _forgotten(none)[0] == (Verdict.STALE, told)
    assert none.waivers == ()


def test_of_a_part_of_the_scenarios_the_rest_is_not_new(server: Server, tmp_path: Path) -> None:
    catalogue = _load(tmp_path, TEXT)
    part = verify(catalogue, server, only=["hold-once"])
    assert against(part, catalogue) == part
    quick = verify(catalogue, server, quick=True)
    assert against(quick, catalogue) == quick


def test_what_is_new_was_never_shown(evidence: Evidence, tmp_path: Path) -> None:
    more = "  lost: {subject: job, title: Lost, when: job.state = 'lost', final: true}\ncallers:\n"
    today = against(evidence, _changed(tmp_path, "callers:\n", more))
    assert _not_verified(today) == {"lost": NEW}
    assert today.verdict is Verdict.UNREACHED


def test_what_is_gone_is_gone(evidence: Evidence, tmp_path: Path) -> None:
    gone = "  nowhere: {subject: note, title: Nowhere, when: note.id < 0, illegal: true}\n"
    today = against(evidence, _changed(tmp_path, gone, ""))
    assert "nowhere" not in {state.id for state in today.states}


def test_broken_stays_broken(evidence: Evidence, tmp_path: Path) -> None:
    states = [state.model_copy(update={"verdict": Verdict.BROKEN, "because": "it was"}) for state in evidence.states]
    broken = evidence.model_copy(update={"states": tuple(states)})
    today = against(broken, _changed(tmp_path, "when: job.state = 'held'", "when: job.state IN ('held')"))
    assert {state.verdict for state in today.states} == {Verdict.BROKEN}
