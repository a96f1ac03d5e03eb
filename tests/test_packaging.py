"""The distribution: locked, and whole outside the checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ("run.txt", "dev.txt")


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]).lower()


def _locked(lock: str) -> dict[str, str]:
    """Each requirement of a lock with all of its hashes, by normalised name."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8").replace("\\\n", "")
    return {_name(line): line for line in text.splitlines() if line}


def _project() -> tuple[set[str], set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = {
        name: {_name(entry) for entry in entries if isinstance(entry, str)}
        for name, entries in project["dependency-groups"].items()
    }
    needed = {_name(entry) for entry in project["project"]["dependencies"]} | groups["build"]
    return needed, needed | groups["dev"]


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_locked_is_pinned_and_hashed(lock: str) -> None:
    for line in _locked(lock).values():
        assert re.match(r"[a-z0-9.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_names_where_it_came_from(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert "index" not in re.sub(r"^\S+==\S+", "", text, flags=re.MULTILINE)


def test_the_locks_cover_what_the_project_asks_for() -> None:
    needed, wanted = _project()
    assert needed <= set(_locked("run.txt"))
    assert wanted <= set(_locked("dev.txt"))


def test_the_locks_agree() -> None:
    run, dev = _locked("run.txt"), _locked("dev.txt")
    assert run == {name: dev[name] for name in run}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = directory.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of an environment with the wheel in it, and none of the checkout.

    What the wheel depends on is borrowed from our own environment, through a path that does not follow
    that environment's own link to the checkout.
    """
    environment = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "install", "--no-deps", "--no-index", wheel], check=True)
    [site_packages] = environment.glob("lib/python*/site-packages")
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    engine = Path(sysconfig.get_path("scripts"), "graphviz-pure")  # the diagrams' engine is a program, not a module
    (environment / "bin" / engine.name).symlink_to(engine)
    return environment / "bin"


def test_the_wheel_holds_the_package_and_every_template(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        told = set(archive.namelist())
    package = {
        f"failure_matrix/{path.relative_to(ROOT / 'src' / 'failure_matrix')}"
        for path in (ROOT / "src" / "failure_matrix").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    templates = {
        f"failure_matrix/templates/{path.relative_to(ROOT / 'templates')}"
        for path in (ROOT / "templates").rglob("*")
        if path.is_file()
    }
    assert templates
    assert package | templates <= told
    others = {name for name in told if not name.startswith("failure_matrix/")}
    assert all(".dist-info/" in name for name in others)


def test_the_wheel_works_in_an_empty_directory(empty: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run([empty / "matrix", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = subprocess.run(
        [empty / "python", "-c", "import failure_matrix; print(failure_matrix.__file__)"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(empty.parent)
    run("init", "mine")
    assert run("check", "--catalogue", "mine") == "0 errors, 0 warnings.\n"
    assert run("rule", "cut-scalar").startswith("# cut-scalar")
    assert run("verify", "--catalogue", "mine", "--output", "seen.json").splitlines()[-1].endswith("exit 0")
    run("build", "--catalogue", "mine", "--evidence", "seen.json", "--site", "pages")
    assert "Ready" in (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    run("build", "--catalogue", "mine", "--evidence", "seen.json", "--site", "pages", "--check")
    run("build", "--catalogue", "mine", "--site", "proved")
    assert (tmp_path / "proved" / "evidence.json").is_file()
