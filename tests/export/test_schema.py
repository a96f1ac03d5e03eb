"""The JSON Schema that editors use takes what ``check`` takes, and not what it can know to be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.export.schema import schema

ROOT = Path(__file__).parents[2]
OURS = sorted(
    path
    for directory in ("matrix", "examples", "benchmarks/catalogue", "src/failure_matrix/cli")
    for path in (ROOT / directory).rglob("*.yaml")
)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    found = schema()
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_our_own_files_are_valid(validator: jsonschema.Draft202012Validator, path: Path) -> None:
    errors = [error.message for error in validator.iter_errors(yaml.safe_load(path.read_text(encoding="utf-8")))]
    assert errors == []


def test_it_knows_every_top_level_key() -> None:
    keys = {info.alias or name for name, info in Catalogue.model_fields.items() if not info.exclude}
    assert schema()["properties"].keys() == keys


WRONG: dict[str, Any] = {
    "an unknown key": {"scenario": {}},
    "a key that is no id": {"states": {"Not_An_Id": {"subject": "job", "title": "T", "when": "true"}}},
    "a missing key": {"states": {"ready": {"subject": "job", "title": "T"}}},
    "a wrong word": {"scenarios": {"one": {"title": "T", "steps": [], "orders": "some"}}},
    "a wrong type": {"catalogue": {"title": "T", "strict": "yes"}},
    "an unknown key of SQL": {"invariants": {"one": {"title": "T", "sql": {"fil": "x.sql"}}}},
    "files where rows belong": {"scenarios": {"one": {"title": "T", "steps": [], "given": {"job": {"a": 1}}}}},
}
RIGHT: dict[str, Any] = {
    "one where a list may stand": {
        "scenarios": {"one": {"title": "T", "steps": [{"in": "A", "sql": "x", "waits": "B"}]}}
    },
    "a SQLSTATE that looks like a number": {
        "scenarios": {"one": {"title": "T", "steps": [{"in": "A", "sql": "x", "error": 23505}]}}
    },
    "an empty file of scenarios": {},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_not_valid(validator: jsonschema.Draft202012Validator, body: Any) -> None:
    assert not validator.is_valid(body)


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_valid(validator: jsonschema.Draft202012Validator, body: Any) -> None:
    assert validator.is_valid(body)
