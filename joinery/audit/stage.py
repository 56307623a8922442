"""Finds the topics and the schemas of a join that runs. Nothing is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joinery.faults import does_not_fit, has_not_run
from joinery.planning.errors import PlanError
from joinery.planning.plan import plan_join
from joinery.records import Stage

if TYPE_CHECKING:
    from joinery.catalogue import Catalogue
    from joinery.definition import Join
    from joinery.records import Definitions
    from stream_runtime.kafka import Topics

_NO_ID = 0


def find_stage(definitions: Definitions, catalogue: Catalogue, topics: Topics, join: Join) -> Stage:
    """The stage of a join, without the ids of the target's schemas. CdcError JOIN_AUDIT if it has not run yet."""
    found = {name: catalogue.input_schema(given) for name, given in join.input.items()}
    schemas = {name: schema for name, schema in found.items() if schema is not None}
    target = catalogue.input_schema(join.target)
    if target is None or len(schemas) < len(found):
        raise has_not_run(join)
    try:
        plan = plan_join(join, schemas, target.columns)
    except PlanError as error:
        raise does_not_fit(join, error) from error
    internal = definitions.internal_topic(join)
    shapes = topics.shapes([internal, *sorted({schema.topic for schema in schemas.values()})])
    shape = shapes.pop(internal)
    return Stage(plan, shapes, internal, shape, target.topic, _NO_ID, _NO_ID)
