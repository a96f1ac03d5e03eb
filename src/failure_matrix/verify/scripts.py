"""What a step does in its session, as a script: it yields requests, is sent answers, and returns its outcome.

A script that waits for a lock is simply one that has not been sent its answer yet.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from failure_matrix.database.answers import Answer, Result, Value
from failure_matrix.verify.stores import Effect, Stores


@dataclass(frozen=True, kw_only=True)
class Request:
    text: str
    values: Sequence[Value] = ()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a step ended. ``effect`` is a store effect that took place."""

    answer: Answer
    effect: Effect | None = None
    rolled_back: bool = False  # by the script itself, which found nothing to do

    @property
    def ran(self) -> bool:
        return self.answer.error is None and not self.answer.lost

    @property
    def took(self) -> bool:
        """Whether it surely did something: a statement gave a row, or one that counts none ran."""
        return self.ran and any(result.affected != 0 for result in self.answer.results)

    @property
    def did_nothing(self) -> bool:
        """Whether it surely did nothing. A SELECT without rows may still have changed something, in WITH."""
        return not self.ran or all(
            result.affected == 0 and result.tag.startswith(_COUNTING) for result in self.answer.results
        )


_COUNTING = ("UPDATE", "DELETE", "INSERT", "MERGE")  # tags of statements that change just the rows they count

Script = Generator[Request, Answer, Outcome]


def plain(text: str, values: Sequence[Value]) -> Script:
    """Send it as it stands."""
    answer = yield Request(text=text, values=values)
    return Outcome(answer=answer)


def with_effect(text: str, values: Sequence[Value], effect: Effect, stores: Stores, *, in_transaction: bool) -> Script:
    """The SQL, stop when it gave no row, the effect, commit: in one transaction."""
    if not in_transaction:
        begun = yield Request(text="BEGIN")
        if begun.error or begun.lost:
            return Outcome(answer=begun)
    answer = yield Request(text=text, values=values)
    took = answer.error is None and not answer.lost and answer.last is not None and bool(answer.last.affected)
    done = stores.apply(effect) if took else None
    if not in_transaction and not answer.lost:
        ended = yield Request(text="COMMIT" if done is not None and done.affected else "ROLLBACK")
        answer = answer if ended.error is None and not ended.lost else ended
    happened = done is not None and bool(done.affected)
    return Outcome(
        answer=answer if done is None else _with_result(answer, done),
        effect=effect if happened else None,
        rolled_back=not in_transaction and not happened,
    )


def effect_alone(effect: Effect, stores: Stores) -> Outcome:
    """The effect of an action or event without SQL."""
    done = stores.apply(effect)
    return Outcome(answer=Answer(results=(done,)), effect=effect if done.affected else None)


def _with_result(answer: Answer, result: Result) -> Answer:
    return replace(answer, results=(*answer.results, result))
