"""Where transactions end, told from command tags and from the names in statements."""

from __future__ import annotations

import pytest

from failure_matrix.database.answers import Answer, Result, ServerError
from failure_matrix.verify.endings import End, Ending, endings
from failure_matrix.verify.scripts import Outcome


@pytest.mark.parametrize(
    ("tags", "text", "found"),
    [
        (["SELECT 1"], "SELECT 1", []),
        (["COMMIT"], "commit", [(End.COMMIT, "commit")]),
        (["ROLLBACK"], "COMMIT", [(End.ROLLBACK, "commit")]),  # of a failed transaction
        (["COMMIT"], "COMMIT AND CHAIN", [(End.COMMIT, "chain")]),
        (["ROLLBACK"], "ROLLBACK", [(End.ROLLBACK, "rollback")]),
        (["ROLLBACK"], "ROLLBACK TO a", [(End.ROLLBACK_TO, "a")]),
        (["ROLLBACK"], 'rollback work to savepoint "An ""A"""; -- done', [(End.ROLLBACK_TO, 'An "A"')]),
        (["SAVEPOINT"], "SAVEPOINT A", [(End.SAVEPOINT, "a")]),
        (["RELEASE"], "RELEASE a", []),
        (["PREPARE TRANSACTION"], "PREPARE TRANSACTION 'it''s'", [(End.PREPARE, "it's")]),
        (["COMMIT PREPARED"], "COMMIT PREPARED 'x'", [(End.COMMIT_PREPARED, "x")]),
        (["ROLLBACK PREPARED"], "ROLLBACK PREPARED 'x' ;", [(End.ROLLBACK_PREPARED, "x")]),
        (
            ["BEGIN", "UPDATE 1", "COMMIT", "BEGIN", "ROLLBACK"],
            "BEGIN; UPDATE t SET a = ';'; COMMIT; BEGIN; ROLLBACK",
            [(End.COMMIT, "commit"), (End.ROLLBACK, "rollback")],
        ),
        (["COMMIT", "COMMIT"], "COMMIT", [(End.COMMIT, "commit"), (End.COMMIT, None)]),  # more than the text tells
    ],
)
def test_endings(tags: list[str], text: str, found: list[tuple[End, str | None]]) -> None:
    wanted = [Ending(end=end, name=name) for end, name in found]
    assert list(endings([Result(tag=tag) for tag in tags], text)) == wanted


def outcome(*results: tuple[str, int | None], error: bool = False, lost: bool = False) -> Outcome:
    failed = ServerError(severity="ERROR", sqlstate="XX000", message="no") if error else None
    made = tuple(Result(tag=tag, affected=affected) for tag, affected in results)
    return Outcome(answer=Answer(results=made, error=failed, lost=lost))


@pytest.mark.parametrize(
    ("ended", "took", "nothing"),
    [
        (outcome(("UPDATE 1", 1)), True, False),
        (outcome(("UPDATE 0", 0)), False, True),
        (outcome(("INSERT 0 0", 0), ("DELETE 0", 0), ("MERGE 0", 0)), False, True),
        (outcome(("UPDATE 1", 1), ("UPDATE 0", 0)), True, False),
        (outcome(("SELECT 0", 0)), False, False),  # WITH may have changed something
        (outcome(("CALL", None)), True, False),
        (outcome(("create", 0)), False, False),
        (outcome(("UPDATE 1", 1), error=True), False, True),
        (outcome(("UPDATE 1", 1), lost=True), False, True),
    ],
)
def test_what_an_answer_tells_of_what_was_done(ended: Outcome, took: bool, nothing: bool) -> None:
    assert (ended.took, ended.did_nothing) == (took, nothing)
