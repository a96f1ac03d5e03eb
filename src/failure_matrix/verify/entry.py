"""One step of a play: where it stands in the catalogue, and what it did and showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from failure_matrix.catalogue.model import Scalar, Step
from failure_matrix.database.answers import Answer, Value
from failure_matrix.evidence.records import Change, Failure
from failure_matrix.verify.bind import Bound
from failure_matrix.verify.judge import Blame, Standing

_SAID = 40  # characters of a statement that a message says


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """A step with its number and its path in the catalogue; a step of ``after`` has number 0."""

    number: int
    path: tuple[str | int, ...]
    step: Step


@dataclass(kw_only=True)
class Entry:
    """What one step did and showed; completed when a later step sets it free."""

    numbered: Numbered
    text: str = ""  # the SQL, or what is done instead
    effect: str = ""  # on a store
    secret: frozenset[str] = frozenset()  # parameters whose values hidden columns gave
    parameters: dict[str, Scalar] = field(default_factory=dict)
    at: Value = None
    bound: Bound | None = None
    blame: Blame = field(default_factory=Blame)
    answer: Answer | None = None
    in_transaction: bool = False
    late: float | None = None  # seconds after which it was cancelled
    waits: tuple[str, ...] = ()
    releases: list[int] = field(default_factory=list)
    released_by: int | None = None
    standing: Standing | None = None
    seen_by: dict[str, Standing] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    breaks: tuple[str, ...] = ()
    failures: list[Failure] = field(default_factory=list)

    @property
    def step(self) -> Step:
        return self.numbered.step

    @cached_property
    def where(self) -> str:
        """The step in a few words."""
        return describe(self.step)

    @property
    def session(self) -> str | None:
        return self.step.in_


def describe(step: Step) -> str:
    """A step in a few words: ``A did publish``."""
    who = f"{step.in_} " if step.in_ else ""
    match step:
        case Step(do=str() as action):
            return f"{who}did {action}"
        case Step(sql=sql) if sql is not None:
            return f"{who}ran {_short(' '.join(sql.text.split()))}"
        case Step(kill=str() as session):
            return f"killed {session}"
        case Step(in_=str(), event=str() as event):
            return f"{who}had event {event}"
        case Step(at=str() as at):
            return f"clock at {at}"
        case _:
            return f"event {step.event}"


def _short(text: str) -> str:
    return text if len(text) <= _SAID else f"{text[: _SAID - 1].rstrip()}…"
