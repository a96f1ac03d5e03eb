"""The whole command on the shipped catalogue and on spoilt copies of it, as its user runs it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from failure_matrix.catalogue.load import load
from failure_matrix.database import hosting
from failure_matrix.database.cluster import Server, Source, serve
from failure_matrix.evidence import files
from failure_matrix.evidence.records import Evidence, Verdict
from failure_matrix.verify import verify

SHIPPED = Path(__file__).parents[2] / "matrix"
COMMAND = Path(sys.executable).with_name("matrix")
DEBIAN = Path("/usr/lib/postgresql/15")
CHAIN = ("first-lease", "takeover-too-early")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The shipped catalogue, to be spoilt."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "matrix"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``matrix verify`` in a directory of its own."""

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "120"}
        return subprocess.run(
            [COMMAND, "verify", *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=55, check=False,
        )  # fmt: skip

    return command


def spoil(file: Path, within: str, old: str, new: str) -> None:
    """Replace one piece, a pattern, of the part of a file that begins with ``within`` and ends with the next."""
    text = file.read_text()
    part = re.search(rf"^  {within}:\n(?:    .*\n|\n)+", text, re.MULTILINE)
    assert part is not None
    spoilt, pieces = re.subn(old, new, part[0])
    assert pieces == 1
    file.write_text(text.replace(part[0], spoilt))


@pytest.fixture
def there(server: Server) -> tuple[str, str]:
    """The option for a server that is there already, which saves starting one."""
    return "--dsn", server.conninfo("postgres")


def test_a_guard_that_is_missing_is_noticed(copy: Path, run: Run, there: tuple[str, str]) -> None:
    spoil(copy / "actions.yaml", "heartbeat", " AND epoch = :epoch", "")
    done = run("old-heartbeat", "same-name-old-generation", *there)
    assert done.returncode == 1
    assert done.stderr == ""
    for said in ("same-name-old-generation", "step 4: A did heartbeat: 1 row, expected 0", "0 rows", "1 row"):
        assert said in done.stdout
    assert re.search(r"expected +0 rows +matrix/scenarios/2-authority\.yaml:\d+\n +observed +1 row\n", done.stdout)
    assert done.stdout.splitlines()[-1].startswith("broken: ")
    assert done.stdout.splitlines()[-1].endswith("exit 1")


def test_predicates_that_overlap_are_ambiguous(copy: Path, run: Run, there: tuple[str, str]) -> None:
    spoil(copy / "states" / "1-job.yaml", "expired", r"job\.lease_until <= :now", "job.lease_until <= :now + 10")
    done = run("first-lease", *there)
    assert done.returncode == 1
    assert "A did acquire: ambiguous: job 1 is in 2 states at once: leased, expired" in " ".join(done.stdout.split())


def test_a_move_that_is_missing_is_undeclared(copy: Path, run: Run, there: tuple[str, str]) -> None:
    spoil(copy / "actions.yaml", "acquire", "      ready: leased\n", "")
    spoil(copy / "states" / "1-job.yaml", "ready", "      acquire: .*\n", "")  # else it is found without a server
    done = run("first-lease", *there)
    assert done.returncode == 1
    said = "A did acquire: undeclared: job 1 went ready -> leased; acquire declares no such move"
    assert said in " ".join(done.stdout.split())


def test_a_fresh_file_is_never_written_over(copy: Path, run: Run, tmp_path: Path) -> None:
    first = run(*CHAIN, "--output", "e.json")
    assert (first.returncode, first.stderr) == (0, "")
    written = (tmp_path / "e.json").read_bytes()
    second = run(*CHAIN, "--output", "e.json")
    assert second.returncode == 2
    assert second.stderr.startswith("could not write evidence to 'e.json': it exists already")
    assert second.stderr.rstrip().endswith("No verdict. Earlier evidence is untouched.")
    assert (tmp_path / "e.json").read_bytes() == written
    third = run(*CHAIN, "--output", "f.json")
    assert third.returncode == 0
    assert _outside_run(tmp_path / "f.json") == _outside_run(tmp_path / "e.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.json", "f.json", copy.name]


def _outside_run(path: Path) -> str:
    return re.sub(r'\n  "run": \{\n(    .*\n)+  \},', "", path.read_text())


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory for temporary servers, which everyone may enter."""
    directory = Path(tempfile.mkdtemp(prefix="place-", dir=hosting.place(None, programs=True)))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)


def test_a_kill_leaves_nothing(copy: Path, place: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(place)}
    kept = tmp_path / ".matrix"
    for instant in sorted(random.uniform(0.1, 2.0) for _ in range(5)):  # noqa: S311 - seconds
        process = subprocess.Popen(
            [COMMAND, "verify", *CHAIN], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            process.wait(timeout=instant)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate(timeout=50)  # until nobody holds its output any more: neither it nor what it started
        assert _traces(place) == []
        left = list(kept.iterdir()) if kept.exists() else []
        assert [path.name for path in left] in ([], ["evidence.json"])
        for path in left:
            assert files.read(path).verdict is Verdict.INCOMPLETE
            path.unlink()
    assert sorted(path.name for path in tmp_path.iterdir() if path != kept) == [copy.name]


def _traces(place: Path) -> list[str]:
    words = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [str(path) for path in place.iterdir()] + [line for line in words if str(place) in line]


def _verdicts(evidence: Evidence) -> dict[str, str]:
    said = {f"scenario {each.id}": each for each in evidence.scenarios}
    moves = {f"move {each.from_} {each.by} {each.to}": each.verdict for each in evidence.moves}
    return {
        **{name: f"{each.verdict} {each.because}" for name, each in said.items()},
        **{f"state {each.id}": each.verdict for each in evidence.states},
        **moves,
        "all": evidence.verdict,
    }


def test_an_older_server_gives_the_same_verdicts(server: Server) -> None:
    if not DEBIAN.exists():
        if os.environ.get("CI"):
            pytest.fail(f"there is no {DEBIAN}, and CI must have it")
        pytest.skip(f"no {DEBIAN}: nothing says that an older server gives the same verdicts")
    catalogue = load(SHIPPED)
    ours = verify(catalogue, server, quick=True)
    with serve(Source(prefix=DEBIAN)) as older:
        assert older.major == 15
        theirs = verify(catalogue, older, quick=True)
    assert _verdicts(theirs) == _verdicts(ours)
    listed = [record for record in theirs.scenarios if catalogue.scenarios[record.id].orders == "listed"]
    assert {record.verdict for record in listed} == {Verdict.VERIFIED}
    apart: dict[str, object] = {"run": None, "postgresql": None, "digests": {}}
    stripped = [json.loads(each.model_copy(update=apart).model_dump_json()) for each in (ours, theirs)]
    for each in stripped:  # fingerprints cover the major version
        for record in (*each["scenarios"], *each["states"]):
            del record["fingerprint"]
    assert stripped[0] == stripped[1]
