"""Evidence files: whole or not at all, never over another, read only when they are what they say."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import jsonschema
import pytest

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.evidence import files
from failure_matrix.evidence.records import (
    FORMAT,
    CatalogueRecord,
    Count,
    Evidence,
    PostgreSQL,
    Run,
    ScenarioRecord,
    StepRecord,
    Verdict,
)

SCHEMA = Path(__file__).parents[2] / "docs" / "evidence.schema.json"


@pytest.fixture
def evidence() -> Evidence:
    step = StepRecord.model_validate(
        {"number": 1, "in": "A", "verb": "do", "name": "finish", "text": "UPDATE …", "with": {"id": "1"}}
    )
    return Evidence(
        catalogue=CatalogueRecord(title="Ünïcode “queue”", fingerprint="c0"),
        postgresql=PostgreSQL(major=18),
        verdict=Verdict.VERIFIED,
        scenarios=(ScenarioRecord(id="once", title="Once", verdict=Verdict.VERIFIED, fingerprint="f", steps=(step,)),),
        coverage={"states": Count(of=1, verified=1), "moves": Count(of=0, verified=0)},
        run=Run(
            started="2026-01-02T03:04:05Z",
            seconds=1.5,
            postgresql="18.6",
            server="embedded",
            host="here",
            commit=None,
            version="0",
        ),
    )


def test_what_is_written_is_read(evidence: Evidence, tmp_path: Path) -> None:
    files.write(evidence, tmp_path / "e.json", fresh=True)
    assert files.read(tmp_path / "e.json") == evidence


def test_the_text_is_sorted_indented_and_ends_with_a_newline(evidence: Evidence) -> None:
    text = files.text(evidence)
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert "“queue”" in text


@pytest.mark.parametrize("there", ["file", "directory", "link", "dangling"])
def test_fresh_refuses_what_exists_and_leaves_it(there: str, evidence: Evidence, tmp_path: Path) -> None:
    path, other = tmp_path / "e.json", tmp_path / "other"
    match there:
        case "file":
            path.write_text("mine")
        case "directory":
            path.mkdir()
        case "link":
            other.write_text("mine")
            path.symlink_to(other)
        case _:
            path.symlink_to(other)
    before = path.lstat()
    with pytest.raises(CouldNot, match=r"e\.json': it exists already"):
        files.refuse(path)
    with pytest.raises(CouldNot, match=r"e\.json': it exists already"):
        files.write(evidence, path, fresh=True)
    assert path.lstat() == before
    assert not other.exists() or other.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) in ([path], [path, other])


def test_replacing_keeps_no_part_of_the_old_file(evidence: Evidence, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "e.json"
    files.write(evidence, path, fresh=False)
    path.write_text("x" * 1_000_000)
    files.write(evidence, path, fresh=False)
    assert path.read_text(encoding="utf-8") == files.text(evidence)
    assert list(path.parent.iterdir()) == [path]


def test_the_temporary_file_is_announced_before_it_exists(evidence: Evidence, tmp_path: Path) -> None:
    told: list[tuple[Path, bool]] = []
    files.write(evidence, tmp_path / "e.json", fresh=True, forget=lambda path: told.append((path, path.exists())))
    [(path, existed)] = told
    assert path.parent == tmp_path
    assert path.name != "e.json"
    assert not existed
    assert not path.exists()


def test_a_failure_leaves_neither_file(evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CouldNot, match="No space left on device"):
        files.write(evidence, tmp_path / "e.json", fresh=False)
    assert list(tmp_path.iterdir()) == []


def test_the_mode_is_what_the_umask_says(evidence: Evidence, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        files.write(evidence, tmp_path / "e.json", fresh=True)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "e.json").stat().st_mode) == 0o640


def test_fresh_needs_a_directory(tmp_path: Path) -> None:
    with pytest.raises(CouldNot, match="there is no directory"):
        files.refuse(tmp_path / "none" / "e.json")


def test_a_place_where_nothing_can_be_put_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    files.refuse_place(tmp_path / "file")
    files.refuse_place(tmp_path / "none" / "as" / "yet" / "e.json")
    with pytest.raises(CouldNot, match="it is a directory"):
        files.refuse_place(tmp_path)
    with pytest.raises(CouldNot, match="file' is no directory"):
        files.refuse_place(tmp_path / "file" / "e.json")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write where nobody else may
    with pytest.raises(CouldNot, match="nothing can be written in"):
        files.refuse_place(tmp_path / "e.json")


def test_a_working_directory_that_has_gone(evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    def forget(path: Path) -> None:
        path.absolute()  # as a guardian must be told it

    with pytest.raises(CouldNot, match="No such file or directory"):
        files.write(evidence, Path("e.json"), fresh=False, forget=forget)


def test_a_file_in_the_way_of_the_directory(evidence: Evidence, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CouldNot, match="could not write evidence"):
        files.write(evidence, tmp_path / "file" / "e.json", fresh=False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is not JSON, or cut off"),
        (b'{"format": "failure-matrix/evidence/1", "cat', "it is not JSON, or cut off"),
        (b"\xff\xfe", "it is not JSON, or cut off"),
        (b"[1, 2]", "it is no evidence file"),
        (b'{"name": "package"}', "it is no evidence file"),
        (b'{"format": "failure-matrix/evidence/9"}', "its format is 'failure-matrix/evidence/9', expected '"),
        (b'{"format": "failure-matrix/evidence/1"}', r"catalogue: Field required \(4 such faults\)"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
    ],
)
def test_what_is_no_evidence_is_said_to_be_none(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(content)
    with pytest.raises(CouldNot, match=said) as raised:
        files.read(path)
    assert f"could not read evidence from '{path}'" in str(raised.value)
    assert str(raised.value).endswith("No verdict.")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CouldNot, match="No such file"):
        files.read(tmp_path / "e.json")


def test_a_truncated_file_is_never_read(evidence: Evidence, tmp_path: Path) -> None:
    text = files.text(evidence).encode()
    path = tmp_path / "e.json"
    for length in range(0, len(text) - 2, 97):
        path.write_bytes(text[:length])
        with pytest.raises(CouldNot):
            files.read(path)


def test_the_committed_schema_is_made_from_the_records() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == files.schema(), (
        "run: .venv/bin/python -c 'from failure_matrix.evidence import files; print(files.schema(), end=\"\")'"
        " > docs/evidence.schema.json"
    )


def test_evidence_is_valid_under_the_schema(evidence: Evidence) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    told = json.loads(files.text(evidence))
    jsonschema.validate(told, schema, cls=jsonschema.Draft202012Validator)
    for fault in ({"format": FORMAT + "0"}, {"verdict": "fine"}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**told, **fault}, schema, cls=jsonschema.Draft202012Validator)
