"""Who tries an action: a caller's columns, bound from the row that the step's key names."""

from __future__ import annotations

from collections.abc import Mapping

from failure_matrix.catalogue.model import Catalogue, Scalar, Sql, Step
from failure_matrix.catalogue.sql import statement
from failure_matrix.database.relations import store_relations, store_values
from failure_matrix.verify.values import Kept, NotKept, substitute
from failure_matrix.verify.world import World


def call(catalogue: Catalogue, step: Step, world: World, kept: Kept) -> Mapping[str, Scalar]:
    """The columns of the caller that ``as`` names. Raises NotKept where there is no such caller."""
    assert step.as_ is not None
    caller = catalogue.callers[step.as_]
    if not isinstance(caller, Sql):
        return caller
    items = store_relations(catalogue.stores)
    head = f"WITH {', '.join(items)} " if items else ""
    asked = statement(Sql(text=f"{head}SELECT * FROM (\n{caller.text}\n) AS caller"))
    action = catalogue.actions[step.do] if step.do else None
    sources: dict[str, Scalar] = {
        "now": world.now,
        **(action.with_ if action else {}),
        **{name: substitute(value, kept) for name, value in step.with_.items()},
        **store_values(world.stores.inventory()),
    }
    missing = [name for name in asked.parameters if name not in sources]
    if missing:
        raise NotKept(f"the caller '{step.as_}' needs ':{missing[0]}': give it with 'with'")
    result = world.admin.query(asked.text, [sources[name] for name in asked.parameters])
    if not result.rows:
        raise NotKept(f"there is no caller '{step.as_}' here: its SQL gives no row")
    return dict(zip(result.columns, result.rows[0], strict=True))
