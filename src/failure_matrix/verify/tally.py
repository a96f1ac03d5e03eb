"""What the tries of one cell gave, all situations together."""

from __future__ import annotations

from dataclasses import dataclass, field

from failure_matrix.evidence.records import Outcome, Witness
from failure_matrix.verify.assess import Assessment


@dataclass(kw_only=True)
class Tally:
    """The first witness of each outcome, and of what is wrong."""

    tries: int = 0
    first: dict[Outcome, tuple[Assessment, Witness]] = field(default_factory=dict)
    to: dict[Outcome, dict[str, None]] = field(default_factory=dict)  # the states that each outcome led to, in order
    said: dict[str, None] = field(default_factory=dict)  # what the record said of refusals, in order
    most_rows: int = 0  # that one try affected or returned
    bad: tuple[Assessment, Witness] | None = None

    def add(self, assessment: Assessment, witness: Witness) -> None:
        self.tries += assessment.outcome not in (Outcome.NO_SUCH_CALLER, Outcome.CANNOT_CALL, Outcome.NOT_TRIED)
        self.most_rows = max(self.most_rows, assessment.rows or 0)
        self.first.setdefault(assessment.outcome, (assessment, witness))
        if assessment.to is not None:
            self.to.setdefault(assessment.outcome, {})[assessment.to] = None
        if assessment.said is not None:
            self.said[assessment.said] = None
        if assessment.wrong is not None and self.bad is None:
            self.bad = (assessment, witness)
