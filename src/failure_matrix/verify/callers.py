"""Who tries an action: what the step's row offers, and the columns of a caller that is bound from it."""

from __future__ import annotations

from collections.abc import Mapping

from failure_matrix.catalogue.model import Catalogue, Scalar, Sql, Step
from failure_matrix.catalogue.sql import statement
from failure_matrix.database.relations import store_relations, store_values
from failure_matrix.verify.rows import rows_of
from failure_matrix.verify.values import Kept, NotKept, key_part, substitute
from failure_matrix.verify.world import World

Values = Mapping[str, Scalar]


def call(catalogue: Catalogue, step: Step, world: World, kept: Kept) -> Values:
    """The columns of the caller that ``as`` names, and what the row offers that the step's key names.

    Raises NotKept where there is no such caller, ServerError.
    """
    assert step.as_ is not None
    action = catalogue.actions[step.do] if step.do else None
    own = {name: substitute(value, kept) for name, value in step.with_.items()}
    offers = _offers(catalogue, action.subject, world, own) if action else {}
    caller = catalogue.callers[step.as_]
    if caller.sql is None:
        return {**caller.gives, **offers}
    with_items = store_relations(catalogue.stores)
    head = f"WITH {', '.join(with_items)} " if with_items else ""
    asked = statement(Sql(text=f"{head}SELECT * FROM (\n{caller.sql.text}\n) AS caller"))
    sources = {
        "now": world.now, **(action.with_ if action else {}), **offers, **own, **store_values(world.stores.inventory())
    }  # fmt: skip
    missing = [name for name in asked.parameters if name not in sources]
    if missing:
        raise NotKept(f"the caller '{step.as_}' needs ':{missing[0]}'", f"with: {{{missing[0]}: …}}")
    result = world.admin.query(asked.text, [sources[name] for name in asked.parameters])
    if not result.rows:
        said = f"there is no caller '{step.as_}' here: its SQL gives no row"
        raise NotKept(said, f"a row of the caller '{step.as_}'")
    if len(result.rows) > 1:
        raise NotKept(f"the caller '{step.as_}' is {len(result.rows)} rows here, and a caller is one", "one row")
    return {**dict(zip(result.columns, result.rows[0], strict=True)), **offers}


def _offers(catalogue: Catalogue, subject: str, world: World, own: Values) -> Values:
    """What the row of this key offers; nothing where the key is not given in full, or no row has it."""
    key, offers = catalogue.subjects[subject].key, catalogue.subjects[subject].offers
    if not offers or not own.keys() >= key.keys():
        return {}
    sources = {"now": world.now, **store_values(world.stores.inventory())}
    found = dict(rows_of(catalogue, subject, world.admin, sources)).get(tuple(key_part(own[name]) for name in key), {})
    return {name: value for name, value in found.items() if name in offers}
