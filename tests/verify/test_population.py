"""The population probe: what the schema admits must be in exactly one state, whatever keys and constraints it has."""

from __future__ import annotations

import pytest
from tests.verify.proving import Edit, Proof, Stage, edited, expected, fault, prove

from failure_matrix.catalogue.findings import CatalogueInvalid, Finding
from failure_matrix.evidence.records import Verdict

SOUND = """
catalogue:
  title: Populations that are covered
  schema:
    - |
      CREATE TABLE parent (
        tenant text, number integer, state text NOT NULL DEFAULT 'new', PRIMARY KEY (tenant, number),
        CONSTRAINT known CHECK (state IN ('new', 'old')));
      CREATE TABLE child (id uuid PRIMARY KEY, tenant text, number integer, done boolean NOT NULL DEFAULT false,
        FOREIGN KEY (tenant, number) REFERENCES parent);
      CREATE TABLE made (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text, note text NOT NULL DEFAULT 'x');
      CREATE TABLE loose (id bigint UNIQUE, state text);
      CREATE TABLE deferred (id bigint PRIMARY KEY, of bigint REFERENCES deferred DEFERRABLE INITIALLY DEFERRED);
      CREATE TABLE seeded (id bigint PRIMARY KEY, state text NOT NULL);
      INSERT INTO seeded VALUES (0, 'root');
      CREATE TABLE guarded (id bigint PRIMARY KEY, state text NOT NULL);
      CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF new.state = 'bad' THEN RAISE EXCEPTION 'no' USING ERRCODE = 'QUE01'; END IF;
          IF new.state = 'worse' THEN RAISE EXCEPTION 'no' USING ERRCODE = 'object_not_in_prerequisite_state'; END IF;
          RETURN new;
        END $$;
      CREATE TRIGGER guard BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION guard();
stores: {box: {directory: box}}
subjects:
  child:
    key: {child: child.id}
    from: child LEFT JOIN parent USING (tenant, number)
    values:  # the child stands first, and its row needs the parent's
      child.done: [true, false]
      child.tenant: [acme]
      child.number: [1, 2]
      parent.tenant: [acme]
      parent.number: [1]
      parent.state: [new, old, bad]
  parent:
    key: {tenant: parent.tenant, number: parent.number}
    from: parent
    values: {parent.state: [new, old, odd]}
  made: {key: {made: made.id}, from: made, values: {made.state: [a, b]}}
  loose: {key: {loose: loose.id}, from: loose, values: {loose.id: [null, 1], loose.state: [a]}}
  deferred: {key: {deferred: deferred.id}, from: deferred, values: {deferred.of: [null, 1, 2]}}
  seeded: {key: {seeded: seeded.id}, from: seeded, values: {seeded.state: [leaf]}}
  guarded: {key: {guarded: guarded.id}, from: guarded, values: {guarded.state: [good, bad, worse, null]}}
  file:
    key: {name: box.name}
    from: box
    values: {box.sha256: ["0", "1"], box.bytes: [0, 1], $now: [0, 9]}
states:
  child-open: {subject: child, title: Open, when: NOT child.done}
  child-done: {subject: child, title: Done, when: child.done}
  parent-new: {subject: parent, title: New, when: parent.state = 'new'}
  parent-old: {subject: parent, title: Old, when: parent.state = 'old'}
  made-a: {subject: made, title: A, when: made.state = 'a' AND made.note = 'x'}
  made-b: {subject: made, title: B, when: made.state = 'b' AND made.note = 'x'}
  loose-a: {subject: loose, title: A, when: loose.state = 'a'}
  deferred-top: {subject: deferred, title: Top, when: deferred.of IS NULL}
  deferred-own: {subject: deferred, title: Own, when: deferred.of = deferred.id}
  seeded-root: {subject: seeded, title: Root, when: seeded.state = 'root'}
  seeded-leaf: {subject: seeded, title: Leaf, when: seeded.state = 'leaf'}
  guarded-good: {subject: guarded, title: Good, when: guarded.state = 'good'}
  file-whole: {subject: file, title: Whole, when: box.name = 'data' AND box.sha256 = '1'}
  file-cut: {subject: file, title: Cut, when: box.name = 'data' AND box.sha256 <> '1'}
actions:
  make:
    subject: made
    title: Make
    sql: INSERT INTO made (state) VALUES ('a') RETURNING id
    moves: {absent: made-a}
scenarios:
  reached:
    title: What can be reached
    given:
      parent: [{tenant: acme, number: 1}, {tenant: acme, number: 2, state: old}]
      made: [{state: a}, {state: b}]
      box: {data: text}
    steps:
      - {in: A, do: make, returns: [{id: 3}]}
"""


@pytest.fixture(scope="module")
def sound(stage: Stage) -> Proof:
    return prove(stage, SOUND, quick=True)


HITS = {  # subject -> combinations, admitted by the schema, hits
    "child": (12, 4, {"child-open": 2, "child-done": 2}),
    "parent": (3, 2, {"parent-new": 1, "parent-old": 1}),
    "made": (2, 2, {"made-a": 1, "made-b": 1}),
    "loose": (2, 2, {"loose-a": 2}),
    "deferred": (3, 2, {"deferred-top": 1, "deferred-own": 1}),
    "guarded": (4, 1, {"guarded-good": 1}),
    "file": (8, 8, {"file-whole": 4, "file-cut": 4}),
}


@pytest.mark.parametrize("subject", HITS)
def test_every_combination_that_the_schema_admits_is_counted_where_it_is(sound: Proof, subject: str) -> None:
    record = sound.population(subject)
    assert (record.verdict, record.because) == (Verdict.VERIFIED, None)
    assert (record.combinations, record.admitted, record.hits) == HITS[subject]


def test_rows_of_the_schema_itself_are_no_hits(sound: Proof) -> None:
    """The root is there before any combination, so none of them shows anything about its state."""
    record = sound.population("seeded")
    assert record.hits == {"seeded-root": 0, "seeded-leaf": 1}
    assert (record.verdict, record.because) == (
        Verdict.INCOMPLETE,
        "no combination is in seeded-root, so nothing was proved there: add values that make one",
    )


def test_sequences_are_as_before(stage: Stage) -> None:
    """Guards play the scenarios again, after the population: a sequence gone on would be noticed for nothing."""
    take = """
  take:
    subject: made
    title: Take
    sql: UPDATE made SET state = 'b' WHERE id = (SELECT max(id) FROM made WHERE state = 'a') RETURNING id
    moves: {made-a: made-b}
"""
    text = edited(SOUND, ("scenarios:\n  reached:", f"{take}scenarios:\n  reached:"))
    proof = prove(stage, f"{text}      - {{in: A, do: take, returns: [{{id: 3}}]}}\n")
    guard = proof.guard("id = (SELECT max(id) FROM made WHERE state = 'a')")
    assert guard.noticed_by[0].startswith("scenario reached, step 2: A did take: ")


def test_a_check_that_is_dropped_is_noticed(stage: Stage) -> None:
    dropped: Edit = (",\n        CONSTRAINT known CHECK (state IN ('new', 'old')));", ");")
    proof = prove(stage, edited(SOUND, dropped), quick=True)
    assert proof.population("parent").because == "parent with parent.state odd is in no state"
    assert proof.state("parent-old").verdict is Verdict.BROKEN
    assert proof.evidence.verdict is Verdict.BROKEN


@pytest.fixture(scope="module")
def faulty(stage: Stage) -> Proof:
    return prove(stage, fault("population"), quick=True)


def test_each_fault_says_what_is_wrong(faulty: Proof) -> None:
    assert [line for line in faulty.not_verified() if " population " in line] == expected("population")


def test_the_smallest_combination_is_shown_as_it_is(faulty: Proof) -> None:
    """Small is near to everybody's first value: the hole begins at (held, 0) and the overlap at (null, A, ready)."""
    assert faulty.population("hole").offending == {"hole.state": "held", "hole.epoch": "0"}
    assert faulty.population("overlap").offending == {
        "overlap.lease": None, "overlap.owner": "A", "overlap.state": "ready",
    }  # fmt: skip
    assert faulty.population("clock").offending == {"clock.lease": "10", "$now": "10"}


def test_which_states_are_in_doubt(faulty: Proof) -> None:
    """Of an overlap those that it is in, of a hole all of the subject, of what was missed just that."""
    verdicts = {state.id: state.verdict for state in faulty.evidence.states}
    assert verdicts["overlap-held"] is verdicts["hole-done"] is Verdict.BROKEN
    assert verdicts["missed-soon"] is Verdict.INCOMPLETE
    assert verdicts["missed-early"] is verdicts["missed-never"] is Verdict.VERIFIED


def test_what_is_hidden_is_not_told(faulty: Proof) -> None:
    assert faulty.population("secret").offending == {"secret.owner": "A", "secret.pin": "(hidden)"}


def rejected(stage: Stage, *edits: Edit) -> Finding:
    with pytest.raises(CatalogueInvalid) as caught:
        prove(stage, edited(SOUND, *edits))
    (finding,) = caught.value.findings
    return finding


def test_values_must_fit_the_schema(stage: Stage) -> None:
    unknown = rejected(stage, ("{made.state: [a, b]}", "{made.status: [a, b]}"))
    assert unknown.rule == "unknown-column"
    assert 'column "status" of relation "made" does not exist' in unknown.message
    generated = rejected(stage, ("{made.state: [a, b]}", "{made.state: [a, b], made.id: [1]}"))
    assert generated.rule == "sql-rejected"
    assert 'cannot insert a non-DEFAULT value into column "id"' in generated.message
    nowhere = rejected(stage, ("{made.state: [a, b]}", "{mode.state: [a, b]}"))
    assert nowhere.rule == "unknown-relation"
