"""From a directory to a catalogue, or to every finding."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from failure_matrix.catalogue.findings import CatalogueInvalid, Finding, Severity
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Caller, Catalogue, Refusal, Sql
from failure_matrix.catalogue.rules import check

Examine = Callable[..., tuple[Finding, ...]]
ROOT = Path(__file__).parents[2]


def read(directory: Path, yaml: str, **others: str) -> Catalogue:
    text = textwrap.dedent(yaml)
    (directory / "a.yaml").write_text(text if "catalogue:" in text else "catalogue: {title: A test}\n" + text)
    for name, other in others.items():
        (directory / name.replace("_", ".")).write_text(textwrap.dedent(other))
    return load(directory)


def refused(directory: Path) -> list[str]:
    with pytest.raises(CatalogueInvalid) as invalid:
        load(directory)
    return [f"{found.place}: {found.rule}: {found.message}" for found in invalid.value.findings]


def test_the_smallest_catalogue_has_warnings_only() -> None:
    catalogue = load(ROOT / "examples" / "smallest")
    found = check(catalogue)
    assert {one.severity for one in found} == {Severity.WARNING}
    assert {one.rule for one in found} == {"no-owner", "no-observation", "no-reverse", "no-retention"}
    assert list(catalogue.states) == ["ready", "done"]
    assert catalogue.actions["finish"].moves == {"ready": ("done",)}
    assert catalogue.scenarios["finish-once"].given.tables == {"job": ({"id": 1},)}
    assert catalogue.scenarios["finish-once"].steps[0].then == {"job": {1: "done"}}


def test_strict_makes_warnings_errors(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "smallest" / "matrix.yaml").read_text()
    found = check(read(tmp_path, text.replace("  title: A small queue", "  title: A small queue\n  strict: true")))
    assert found
    assert {one.severity for one in found} == {Severity.ERROR}


def test_a_value_knows_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalogue = read(
        Path(),
        """\
        catalogue: {title: A test}
        actions:
          publish:
            subject: job
            title: Publish
            sql: SELECT 1
            moves:
              leased: done
              taken: [done, absent]
        """,
    )
    places = [
        (("catalogue", "title"), "a.yaml:1:20"),
        (("actions", "publish"), "a.yaml:3:3"),
        (("actions", "publish", "moves"), "a.yaml:7:5"),
        (("actions", "publish", "moves", "leased"), "a.yaml:8:15"),
        (("actions", "publish", "moves", "taken", 1), "a.yaml:9:21"),
        (("actions", "publish", "moves", "leased", 0), "a.yaml:8:15"),
        (("actions", "publish", "owner"), "a.yaml:3:3"),
        (("events", "none"), ".:1:1"),
    ]
    assert [str(catalogue.place(*path)) for path, _ in places] == [place for _, place in places]


def test_paths_outside_the_working_directory_are_shown_as_given(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("catalogue: {}\n")
    assert refused(tmp_path) == [f"{tmp_path}/a.yaml:1:1: missing-key: the catalogue has no 'title'"]


def test_paths_below_the_working_directory_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.yaml").write_text("catalogue: {}\n")
    said = ["x/a.yaml:1:1: missing-key: the catalogue has no 'title'"]
    assert refused(Path("x")) == refused(tmp_path / "x") == refused(Path("x/../x")) == said


def test_any_file_may_hold_any_part_and_files_are_sorted(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden.yaml").write_text("nonsense")
    (tmp_path / "sub" / "b.yaml").write_text("invariants: {b: {title: B, sql: SELECT 1}}\n")
    catalogue = read(
        tmp_path,
        "invariants: {a: {title: A, sql: SELECT 1}}",
        z_yaml="invariants: {c: {title: C, sql: SELECT 1}}\nowners: {team: {title: The team}}\n",
    )
    assert list(catalogue.invariants) == ["a", "b", "c"]
    assert list(catalogue.owners) == ["team"]


def test_values_keep_what_was_written(tmp_path: Path) -> None:
    catalogue = read(
        tmp_path,
        """\
        subjects:
          item: {key: {a: item.a, b: item.b}, from: item}
        callers:
          some: {1: 0x10, yes: yes, day: 2027-01-31, price: 1.50, none: ~, on: true}
        scenarios:
          one:
            title: One
            given: {item: [{a: 1, b: x}]}
            steps:
              - {in: 1st, sql: SELECT 1, error: 23505, then: {item: {[1, x]: absent, [2, "3"]: absent}}}
              - {at: 010}
              - {in: 1st, sql: SELECT 1, error: {sqlstate: 42e01, constraint: c}, returns: [[1, null], {a: 1}]}
              - {in: 1st, sql: SELECT 1, results: [[[1]], 3, null], waits: maybe, limit: 0.5}
        """.replace("42e01", "42E01"),
    )
    some = catalogue.callers["some"].gives
    assert some == {"1": 16, "yes": "yes", "day": "2027-01-31", "price": Decimal("1.50"), "none": None, "on": True}
    first, clock, third, fourth = catalogue.scenarios["one"].steps
    assert first.error is not None
    assert first.error.sqlstate == "23505"
    assert first.then == {"item": {(1, "x"): "absent", (2, "3"): "absent"}}
    assert clock.at == "010"
    assert third.error is not None
    assert (third.error.sqlstate, third.error.constraint) == ("42E01", "c")
    assert third.returns == ((1, None), {"a": 1})
    assert fourth.results == (((1,),), 3, None)
    assert (fourth.waits, fourth.limit) == (("maybe",), Decimal("0.5"))


def test_sql_comes_from_text_files_and_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lib" / "vendor_of_sql"
    (package / "sql").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "sql" / "queries.sql").write_text("-- a --\nSELECT %(x)s;\n-- name: b :many\n-- about b\nSELECT 2;\n")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    (tmp_path / "matrix").mkdir()
    catalogue = read(
        tmp_path / "matrix",
        """\
        catalogue:
          title: A test
          schema:
            - SELECT 1
            - {file: schema.sql}
            - {package: vendor_of_sql, path: sql/queries.sql, section: a, params: pyformat}
            - {package: vendor_of_sql.sql, path: queries.sql, section: b}
            - {text: SELECT $1, params: numeric}
        """,
        schema_sql="CREATE TABLE t ();\n",
    )
    assert catalogue.settings.schema_ == (
        Sql(text="SELECT 1"),
        Sql(text="CREATE TABLE t ();\n", origin="schema.sql"),
        Sql(text="SELECT %(x)s;", params="pyformat", origin="vendor_of_sql:sql/queries.sql#a"),
        Sql(text="-- about b\nSELECT 2;", origin="vendor_of_sql.sql:queries.sql#b"),
        Sql(text="SELECT $1", params="numeric"),
    )


def test_given_is_rows_files_or_sql(tmp_path: Path) -> None:
    catalogue = read(
        tmp_path,
        """\
        scenarios:
          a: {title: A, steps: [], given: {job: [{id: 1}, {}], files: {a.csv: "1", b.csv: ""}}}
          b: {title: B, steps: [], given: INSERT INTO job VALUES (1)}
          c: {title: C, steps: [], given: {file: c.sql}}
          d: {title: D, steps: [], given: {file: [{id: 1}]}}
        """,
        b_yaml="stores: {files: {directory: files}}\n",
        c_sql="INSERT INTO job VALUES (2)",
    )
    given = [scenario.given for scenario in catalogue.scenarios.values()]
    assert (given[0].tables, given[0].files) == ({"job": ({"id": 1}, {})}, {"files": {"a.csv": "1", "b.csv": ""}})
    assert given[1].sql == Sql(text="INSERT INTO job VALUES (1)")
    assert given[2].sql == Sql(text="INSERT INTO job VALUES (2)", origin="c.sql")
    assert given[3].tables == {"file": ({"id": 1},)}


def test_callers_are_sql_or_constants(tmp_path: Path) -> None:
    catalogue = read(
        tmp_path,
        """\
        callers:
          a: SELECT 1 AS epoch
          b: {text: hello}
          c: {text: SELECT 1, params: none}
          d: {}
        """,
    )
    assert catalogue.callers == {
        "a": Caller(sql=Sql(text="SELECT 1 AS epoch")),
        "b": Caller(gives={"text": "hello"}),
        "c": Caller(sql=Sql(text="SELECT 1", params="none")),
        "d": Caller(),
    }


def test_a_refusal_means_one_thing_or_one_for_each_state(tmp_path: Path) -> None:
    action = "{{subject: job, title: T, sql: SELECT 1, refusal: {{means: {}}}}}"
    catalogue = read(
        tmp_path,
        f"actions:\n  a: {action.format('Stop.')}\n  b: {action.format('{done: Fine.}')}\n",
    )
    assert catalogue.actions["a"].refusal == Refusal.everywhere("Stop.")
    assert catalogue.actions["b"].refusal.means == {"done": "Fine."}


def test_an_alias_is_read_where_it_stands(tmp_path: Path) -> None:
    catalogue = read(tmp_path, "callers:\n  a: &a {owner: A, epoch: 1}\n  b: *a\n")
    assert catalogue.callers["a"] == catalogue.callers["b"] == Caller(gives={"owner": "A", "epoch": 1})


def test_a_caller_is_bare_or_written_out(tmp_path: Path) -> None:
    text = """
        callers:
          bare: SELECT 1 AS epoch
          constants: {title: worker}
          titled: {title: The holder, sql: SELECT 1 AS epoch}
          nothing: {title: A visitor, gives: {}}
    """
    catalogue = read(tmp_path, text)
    epoch = Sql(text="SELECT 1 AS epoch")
    assert catalogue.callers == {
        "bare": Caller(sql=epoch),
        "constants": Caller(gives={"title": "worker"}),
        "titled": Caller(title="The holder", sql=epoch),
        "nothing": Caller(title="A visitor"),
    }


def test_all_findings_of_all_files_come_at_once(examine: Examine) -> None:
    found = examine(
        "states: {a: {subject: job, title: 5, when: x, owner: tem}}\n",
        b_yaml="owners: {team: {titel: The team}}\nsubjects: {job: {key: {id: job.id}, from: job}}\n",
    )
    assert [f"{one.place} {one.rule}: {one.hint}" for one in found] == [
        'a.yaml:2:35 wrong-type: quote it: "5"',
        "b.yaml:1:17 unknown-key: did you mean 'title'?",
    ]


def test_references_are_looked_at_even_where_something_could_not_be_read(examine: Examine) -> None:
    found = examine("states: {a: {subject: job, title: A, when: x, owner: nobody, fnal: true}}\n")
    assert [(one.rule, one.place.column) for one in found] == [
        ("unknown-subject", 23),
        ("unknown-owner", 54),
        ("unknown-key", 62),
    ]


def test_a_file_that_cannot_be_read_makes_nothing_else_unknown(examine: Examine) -> None:
    found = examine(
        "states: {a: {subject: job, title: A, when: x, owner: team}}\n", b_yaml="owners: {team: {title: The team}\n"
    )
    assert [one.rule for one in found] == ["yaml-syntax"]


def test_a_union_is_one_finding(examine: Examine) -> None:
    found = examine(
        """\
        callers: {a: [1]}
        subjects: {job: {key: {id: job.id}, from: job}}
        scenarios:
          a:
            title: A
            given: [1]
            steps:
              - {in: A, sql: [1], returns: {a: 1}, error: [1], then: {job: {{a: b}: c}}, waits: {a: b}}
              - {in: A, sql: 5, returns: [5], results: [x], rows: true, limit: [1], with: {a: {}}}
        """
    )
    assert sorted(one.place.line for one in found) == [2, 7, *[9] * 5, *[10] * 6]
    assert {one.rule for one in found} == {"wrong-type"}
    said = " ".join(f"{one.message} {one.hint}" for one in found)
    assert not any(word in said for word in ("Input", "valid", "int_type", "union", "dict", "pydantic"))


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("- a\n", "wrong-type: the catalogue is a list, where a mapping belongs"),
        ("text\n", "wrong-type: the catalogue is the text 'text', where a mapping belongs"),
        ("owners: [a]\n", "wrong-type: 'owners' is a list, where a mapping belongs"),
        ("owners:\n", "wrong-type: 'owners' is empty, where a mapping belongs"),
        ("[a]: b\n", "wrong-type: a key of the catalogue is a list"),
        ("owners: {[a]: {title: A}}\n", "wrong-type: a key of 'owners' is a list"),
        ("'': b\n", "wrong-value: a key of the catalogue is empty"),
        ("owners: {team: {title: ''}}\n", "wrong-value: 'title' of owner 'team' is empty"),
        ("owners: {team: {title: ~}}\n", "wrong-type: 'title' of owner 'team' is null, where text belongs"),
        ('owners: {"a\\nb": {title: A}}\n', "wrong-value: the key 'a\\nb' is not an id"),
        ("owners: {<<: {}}\n", "yaml-feature: '<<' merges nothing here"),
        ("states: {}\nstates: {}\n", "duplicate-key: 'states' stands twice in the catalogue"),
    ],
)
def test_odd_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, yaml: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(yaml)
    (tmp_path / "b.yaml").write_text("catalogue: {title: A test}\n")
    found = refused(Path())
    assert len(found) == 1
    assert found[0].split(": ", 1)[1].startswith(said)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert refused(gone) == [f"{gone}:1:1: no-catalogue: '{gone}' does not exist"]
    gone.write_text("")
    assert refused(gone) == [f"{gone}:1:1: no-catalogue: '{gone}' is no directory"]


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").symlink_to("a.yaml")
    (tmp_path / "b.yaml").symlink_to("nowhere")
    (tmp_path / "c.yaml").mkdir()
    (tmp_path / "d.yaml").write_bytes("a: ä\nb: ".encode() + b"\xe4\n")
    (tmp_path / "e.yaml").write_bytes("a: b\n".encode("utf-16"))
    os.mkfifo(tmp_path / "f.yaml")
    (tmp_path / "loop").symlink_to(".")
    assert refused(Path()) == [
        "a.yaml:1:1: unreadable-file: this is no file, or a link to nowhere",
        "b.yaml:1:1: unreadable-file: this is no file, or a link to nowhere",
        "d.yaml:2:4: unreadable-file: this is not UTF-8: byte 0xe4",
        "e.yaml:1:1: unreadable-file: this is not UTF-8: byte 0xff",
        "f.yaml:1:1: unreadable-file: this is no file, or a link to nowhere",
    ]


def test_a_file_without_permission_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("catalogue: {title: A test}\n")

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert refused(Path()) == ["a.yaml:1:1: unreadable-file: this cannot be read: Permission denied"]


def test_a_byte_order_mark_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfcatalogue: {title: A test}\r\n")
    catalogue = load(tmp_path)
    assert catalogue.settings.title == "A test"
    assert catalogue.place("catalogue").column == 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{file: gone.sql}", "there is no file 'gone.sql'"),
        ("{file: /etc/passwd}", "the file '/etc/passwd' is named by an absolute path"),
        ("{file: .}", "'.' is no file"),
        ("{file: loop.sql}", "'loop.sql' is no file"),
        ("{file: latin.sql}", "'latin.sql' is not UTF-8: byte 2"),
        ("{file: " + "x" * 300 + "}", "there is no file 'xxx"),
        ("{file: q.sql, section: x}", "'q.sql' has no section 'x'"),
        ("{package: no.such, path: q.sql}", "there is no package 'no' here"),
        ("{package: __main__, path: q.sql}", "there is no package '__main__' here"),
        ("{package: '../x', path: q.sql}", "there is no package '' here"),
        ("{package: os, path: q.sql}", "there is no package 'os' here"),
        ("{path: q.sql}", "this does not name one text"),
        ("{}", "this does not name one text"),
        ("{command: make schema}", "SQL from a command is not there yet"),
    ],
)
def test_sql_that_cannot_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.sql").symlink_to("loop.sql")
    (tmp_path / "latin.sql").write_bytes(b"\x41\xe4")
    (tmp_path / "q.sql").write_text("-- a --\nSELECT 1")
    (tmp_path / "a.yaml").write_text(f"catalogue: {{title: A test, schema: [{source}]}}\n")
    found = refused(Path())
    assert len(found) == 1
    assert found[0].startswith(f"a.yaml:1:37: sql-source: 'schema' of the catalogue: {said}")
