"""What evidence tells: the same bytes each time, and nothing of what is hidden."""

from __future__ import annotations

import json
from typing import Protocol

import pytest

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence import files
from failure_matrix.evidence.records import Evidence, ScenarioRecord
from failure_matrix.verify import verify

SECRET, OTHER = "s3cret-holder", "0therwise"

HIDDEN = """
catalogue:
  title: Secrets
  schema:
    - |
      CREATE TABLE job (id integer PRIMARY KEY, owner text, tenant integer, state text NOT NULL DEFAULT 'new');
      CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE NOTICE 'held by %', NEW.owner; IF NEW.id > 90 THEN RAISE 'not for %', NEW.owner; END IF; RETURN NEW; END $$;
      CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON job FOR EACH ROW EXECUTE FUNCTION shout();
subjects:
  job: {key: {id: job.id}, from: job, show: [job.state, job.owner, job.tenant], hide: [job.owner, job.tenant]}
states:
  new: {subject: job, title: New, when: job.state = 'new'}
  used: {subject: job, title: Used, when: job.state = 'used', final: true}
callers:
  holder: SELECT owner FROM job WHERE id = :id
actions:
  use: {subject: job, title: Use, sql: UPDATE job SET state = 'used' WHERE id = :id AND owner = :owner, moves: {new: used}}
  use-as: {subject: job, title: Use, sql: UPDATE job SET state = 'used' WHERE id = :id AND owner = :who, moves: {new: used}}
  use-with: {subject: job, title: Use, sql: "UPDATE job SET state = 'used' WHERE id = :id RETURNING owner, tenant, id", moves: {new: used}}
invariants:
  tidy: {title: Nobody untidy, sql: SELECT job.* FROM job WHERE state = 'used' AND tenant = 6}
scenarios:
  good:
    title: everywhere that a value can come up
    given: {job: [{id: 1, owner: SECRET, tenant: 5}, {id: 2, owner: SECRET, tenant: 5}, {id: 3, owner: SECRET, tenant: 5}]}
    steps:
      - {in: A, sql: "SELECT id, owner, tenant FROM job WHERE id = 1", returns: [[1, SECRET, 5]], keep: {who: owner}}
      - {in: A, sql: "SELECT owner AS it, upper(id || owner) AS shout, to_jsonb(job) AS whole, job FROM job WHERE id = 1"}
      - {in: A, do: use-as, with: {id: 1, who: $who}, rows: 1}
      - {in: A, do: use, as: holder, with: {id: 2}, rows: 1}
      - {in: A, do: use-with, with: {id: 3}, returns: [[SECRET, 5, 3]]}
      - {in: A, sql: "INSERT INTO job VALUES (99, :who)", with: {who: $who}, error: P0001}
      - {in: A, sql: "SELECT :who::text", with: {who: OTHER}}
      - {in: A, sql: "INSERT INTO job VALUES (4, :owner)", with: {owner: OTHER}, event: arrives}
  other-rows:
    title: a failure that tells rows
    given: {job: [{id: 1, owner: SECRET, tenant: 5}]}
    steps:
      - {in: A, sql: "SELECT owner, tenant, id FROM job", returns: [{owner: OTHER, tenant: 7, id: 2}]}
  other-list:
    title: a failure that tells a list
    given: {job: [{id: 1, owner: SECRET, tenant: 5}]}
    steps:
      - {in: A, sql: "SELECT id, owner FROM job", returns: [[1, OTHER]]}
  unexpected-error:
    title: a failure that tells an error
    given: {job: [{id: 1, owner: SECRET, tenant: 5}]}
    steps:
      - {in: A, sql: "UPDATE job SET id = 91"}
  other-notice:
    title: a failure that tells a notice
    given: {job: [{id: 1, owner: SECRET, tenant: 5}]}
    steps:
      - {in: A, sql: "UPDATE job SET tenant = 8", notice: none}
  untidy:
    title: a failure that tells the rows of an invariant
    given: {job: [{id: 1, owner: SECRET, tenant: 6}]}
    steps:
      - {in: A, do: use-with, with: {id: 1}}
  undeclared:
    title: a failure that tells shown columns
    given: {job: [{id: 1, owner: SECRET, tenant: 5, state: used}]}
    steps:
      - {in: A, sql: "UPDATE job SET state = 'new'"}
events:
  arrives: {title: It arrives, moves: {absent: new}}
""".replace("SECRET", SECRET).replace("OTHER", OTHER)  # fmt: skip


class Stage(Protocol):
    server: Server

    def catalogue(self, *texts: str) -> Catalogue: ...

    def prove(self, *texts: str) -> Evidence: ...

    def scenarios(self, text: str, *more: str) -> dict[str, ScenarioRecord]: ...


def text(evidence: Evidence) -> str:
    """The file without what may differ."""
    return files.text(evidence.model_copy(update={"run": None}))


@pytest.fixture(scope="module")
def hidden(stage: Stage) -> Evidence:
    return verify(stage.catalogue(HIDDEN), stage.server)  # sweep and guards tell things too


def test_what_is_hidden_is_nowhere(hidden: Evidence) -> None:
    told = files.text(hidden)
    assert SECRET not in told
    assert SECRET.upper() not in told.replace("1" + SECRET.upper(), "")  # what SQL made of it is another value
    assert OTHER not in told
    assert "(hidden)" in told


def test_only_what_is_hidden_is(hidden: Evidence) -> None:
    records = {record.id: record for record in hidden.scenarios}
    assert [record.because for record in hidden.scenarios[:1]] == [None]
    first = records["good"].steps[0]
    assert first.returns is not None
    assert first.returns.rows == (("1", "(hidden)", "(hidden)"),)
    told = {id: record.steps[-1].failures[0] for id, record in records.items() if record.steps[-1].failures}
    assert (told["other-rows"].expected, told["other-rows"].observed) == (
        "owner (hidden), tenant (hidden), id 2", "owner (hidden), tenant (hidden), id 1",
    )  # fmt: skip
    assert told["other-list"].observed == "id 1, owner (hidden)"
    assert told["unexpected-error"].observed == "P0001: not for (hidden)"
    assert told["other-notice"].observed == "held by (hidden)"
    assert json.loads(told["untidy"].observed)["id"] == 1
    assert told["undeclared"].observed == "job 1 is new: state new"


VARYING = """
  varying:
    title: values that differ from run to run
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: "SELECT gen_random_uuid() AS a, now(), clock_timestamp()::timestamp, pg_current_xact_id(), pg_current_wal_lsn()", keep: {token: a, moment: now}}
      - {in: A, sql: "SELECT :token::text AS t, 'x ' || :token || ' y' AS inside, jsonb_build_object('k', :token::text) AS j, ARRAY[:token::uuid] AS list", with: {token: $token}}
      - {in: A, sql: "SELECT pg_current_snapshot(), txid_current() > 0 AS later, current_date, 'job'::regclass::oid, 'pg_class'::regclass::oid"}
      - {in: A, sql: "SELECT pg_backend_pid() AS pid, pg_backend_pid()::text AS said, ARRAY[pg_backend_pid()] AS list", keep: {pid: pid}}
      - {in: B, sql: "SELECT pid, application_name FROM pg_stat_activity WHERE pid = :pid::integer", with: {pid: $pid}, returns: [[$pid, A]]}
      - {kill: A}
      - {in: A, sql: "SELECT pg_backend_pid()"}
      - {in: A, do: take, with: {id: 1, owner: $token}, rows: 1}
      - {in: A, sql: "DO $$ BEGIN RAISE NOTICE '% at %', (SELECT owner FROM job), clock_timestamp(); END $$"}
      - {in: A, sql: "DO $$ BEGIN RAISE '%', (SELECT owner FROM job); END $$", error: P0001}
      - {in: A, sql: "SELECT owner, clock_timestamp(), pg_backend_pid() FROM job", returns: [[x, y, z]]}
  steady:
    title: values that do not
    steps:
      - {in: A, sql: "SELECT '2001-02-03 04:05:06+00'::timestamptz, 'infinity'::timestamptz, '2001-02-03'::date, 4711 AS number, '11111111'"}
"""


def test_two_runs_give_the_same_bytes_although_values_vary(stage: Stage, queue: str) -> None:
    catalogue = stage.catalogue(queue, "scenarios:\n" + VARYING)
    first, second = (verify(catalogue, stage.server, quick=True) for _ in range(2))
    assert first.run is not second.run
    assert text(first) == text(second)


def test_what_varies_is_named_in_order_of_appearance(stage: Stage) -> None:
    records = stage.scenarios(VARYING)
    steps = records["varying"].steps
    rows = [step.returns.rows[0] if step.returns else () for step in steps]
    assert rows[0] == ("uuid-1", "moment-1", "moment-2", "xid8-1", "lsn-1")
    assert rows[1] == ("uuid-1", "x uuid-1 y", '{"k": "uuid-1"}', "{uuid-1}")
    assert steps[1].with_ == {"token": "uuid-1"}
    assert rows[2] == ("snapshot-1", "t", "date-1", "oid-1", "1259")
    assert rows[3] == ("pid of A", "pid of A", "{pid of A}")
    assert steps[4].with_ == {"pid": "pid of A"}
    assert rows[4] == ("pid of A", "A")
    assert rows[6] == ("pid of A",)
    assert steps[7].with_["owner"] == "uuid-1"
    assert steps[8].notices == ("uuid-1 at moment-3",)
    assert steps[9].error is not None
    assert steps[9].error.message == "uuid-1"
    assert steps[10].failures[0].observed == "owner uuid-1, clock_timestamp moment-4, pg_backend_pid pid of A"
    steady = records["steady"].steps[0].returns
    assert steady is not None
    assert steady.rows == (("2001-02-03 04:05:06+00", "infinity", "2001-02-03", "4711", "11111111"),)
