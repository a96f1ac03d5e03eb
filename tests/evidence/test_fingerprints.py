"""What a change of the catalogue does to what verdicts rest on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from failure_matrix.catalogue.findings import CatalogueInvalid
from failure_matrix.catalogue.load import load
from failure_matrix.evidence.fingerprints import Fingerprints, digest

TEXT = """
catalogue:
  title: Two tables and a view
  schema:
    - |
      CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL CHECK (state IN ('ready', 'done', 'late')), at integer);
      CREATE TABLE note (id bigint PRIMARY KEY, text text CHECK (text <> ''));
      CREATE VIEW open_job AS SELECT id FROM job WHERE state <> 'done';
subjects:
  job: {key: {id: job.id}, from: job, show: [job.state]}
  note: {key: {note: note.id}, from: note}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready' AND job.at > :now}
  late: {subject: job, title: Late, when: job.state = 'ready' AND job.at <= :now}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
  written: {subject: note, title: Written, when: note.id > 0, final: true}
callers:
  anyone: SELECT id FROM open_job WHERE id = :id
actions:
  finish: {subject: job, title: Finish, sql: UPDATE job SET state = 'done' WHERE id = :id, moves: {ready: done, late: done}}
  write: {subject: note, title: Write, sql: INSERT INTO note (id) VALUES (:note), moves: {absent: written}}
events:
  passes: {title: Time passes, at: job.at, moves: {ready: late}}
  deleted: {title: Deleted, sql: DELETE FROM note WHERE id = :note, moves: {written: absent}}
sessions:
  A: {title: first, isolation: serializable}
scenarios:
  finished:
    title: A job is finished
    given: {job: [{id: 1, state: ready, at: 10}]}
    steps:
      - {in: A, do: finish, as: anyone, with: {id: 1}, rows: 1}
  late:
    title: And late
    after: finished
    steps:
      - {at: 10}
      - {in: A, sql: COMMIT, event: commit}
  written:
    title: A note is written
    steps:
      - {in: B, do: write, with: {note: 1}}
      - {event: deleted, with: {note: 1}}
invariants:
  few-jobs: {title: Few, sql: SELECT id FROM job WHERE id > 100}
"""  # noqa: E501 - YAML

Print = Callable[[str, str], Fingerprints]


@pytest.fixture
def prints(tmp_path: Path) -> Print:
    """The fingerprints of the text with one piece of it replaced."""

    def made(old: str, new: str) -> Fingerprints:
        assert TEXT.count(old) == 1 or old == ""
        place = tmp_path / digest(old, new)
        place.mkdir(exist_ok=True)
        (place / "matrix.yaml").write_text(TEXT.replace(old, new) if old else TEXT)
        try:
            return Fingerprints(load(place), 18)
        except CatalogueInvalid as wrong:
            pytest.fail("\n".join(map(str, wrong.findings)), pytrace=False)

    return made


def all_of(prints: Fingerprints) -> dict[str, str]:
    """The fingerprint of every scenario and state."""
    return {
        **{
            f"scenario {id}": prints.fingerprint(prints.scenario_rests_on(id)) for id in ("finished", "late", "written")
        },
        **{
            f"state {id}": prints.fingerprint(prints.state_rests_on(id, [scenario]))
            for id, scenario in (("ready", "finished"), ("late", "late"), ("done", "finished"), ("written", "written"))
        },
    }


JOBS = {"scenario finished", "scenario late", "state ready", "state late", "state done"}
NOTES = {"scenario written", "state written"}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (" CHECK (text <> '')", "", NOTES),
        (" CHECK (state IN ('ready', 'done', 'late'))", "", JOBS),
        ("SELECT id FROM job WHERE state <> 'done'", "SELECT id FROM job", {"scenario finished", "scenario late"}),
        ("CREATE TABLE job (id", "-- a comment\n      CREATE  TABLE job ( id", set()),
        ("      CREATE VIEW", "      CREATE TABLE other (id integer);\n      CREATE VIEW", set()),
        ("      CREATE VIEW", "      SELECT set_config('a.b', 'c', false);\n      CREATE VIEW", JOBS | NOTES),
        ("title: Ready", "title: Ready at last", set()),
        ("job.at > :now", "job.at >= :now", {"scenario finished", "scenario late", "state ready"}),
        ("note.id > 0", "note.id > 1", NOTES),
        ("from: note}", "from: note LEFT JOIN job ON false}", NOTES),
        ("SET state = 'done' WHERE", "SET state  =  'done' WHERE", set()),
        ("SET state = 'done' WHERE", "SET state = 'done' WHERE state <> 'done' AND", JOBS),
        ("VALUES (:note)", "VALUES (:note + 0)", NOTES),
        ("FROM open_job WHERE id", "FROM open_job WHERE -id", JOBS),
        ("DELETE FROM note WHERE id", "DELETE FROM note WHERE 0 + id", NOTES),
        ("id: 1, state: ready, at: 10", "id: 1, state: ready, at: 11", JOBS),
        ("with: {id: 1}, rows: 1", "with: {id: 1}, rows: 2", JOBS),
        ("title: A job is finished", "title: A job was finished", set()),
        ("isolation: serializable", "isolation: repeatable read", JOBS),
        ("{title: first, ", "{title: the first, ", set()),
        (
            "SELECT id FROM job WHERE id > 100",
            "SELECT id FROM job WHERE id > 9",
            {"scenario finished", "scenario late"},
        ),
        ("title: Two tables and a view", "title: Two tables and a view\n  clock: wall", JOBS | NOTES),
    ],
)
def test_a_change_reaches_just_what_rests_on_it(prints: Print, old: str, new: str, changed: set[str]) -> None:
    before, after = all_of(prints("", "")), all_of(prints(old, new))
    assert {name for name in before if before[name] != after[name]} == changed


def test_the_major_version_reaches_everything(prints: Print) -> None:
    eighteen = prints("", "")
    seventeen = Fingerprints(eighteen._catalogue, 17)
    before, after = all_of(eighteen), all_of(seventeen)
    assert all(before[name] != after[name] for name in before)


def test_the_catalogue_as_a_whole_covers_its_prose(prints: Print) -> None:
    assert prints("", "").catalogue() != prints("title: Ready", "title: Ready at last").catalogue()
    assert prints("", "").catalogue() == prints("CREATE TABLE note", "CREATE  TABLE  note").catalogue()


def test_every_name_that_something_rests_on_has_a_digest(prints: Print) -> None:
    made = prints("", "")
    every = made.everything()
    for id in ("finished", "late", "written"):
        assert made.scenario_rests_on(id) <= every.keys()
    assert made.state_rests_on("ready", ["finished"]) <= every.keys()
    assert all(len(value) == 16 for name, value in every.items() if name != "postgresql/major")


def test_a_guard_rests_on_all_that_was_done_where_its_absence_was_noticed(prints: Print) -> None:
    made = prints("", "")
    assert made.guard_rests_on("finish", ("scenario/finished",)) >= made.shown_by("finished") >= {"caller/anyone"}
    assert "scenario/finished" not in made.guard_rests_on("finish", ("caller/anyone",))


def test_a_digest_keeps_its_parts_apart() -> None:
    assert digest("a", "bc") != digest("ab", "c")
    assert digest("a") != digest("a", "")
