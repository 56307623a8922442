"""A fuzz target for the core's Avro engine: the Python code and fastavro say what it may take."""

from __future__ import annotations

import random

from dev.verify.fuzz.target import Target
from tests.support.cdc_native.avro_cases import Case, Schemas
from tests.support.cdc_native.avro_checks import check_message

_SCHEMAS = 128


def avro() -> Target:
    """A message of the schema that the first byte chooses, through all functions of the engine."""
    cases, seeds = [], []
    for number in range(_SCHEMAS):
        rng = random.Random(number)
        case = Case.of(Schemas(rng, with_unions=number % 2 == 1).record())
        messages = [case.message(rng, in_blocks=in_blocks) for in_blocks in (False, True)]
        cases.append((case, messages[0]))
        seeds += [bytes((number,)) + message for message in messages]

    def run(data: bytes) -> bool:
        case, whole = cases[data[0] % _SCHEMAS] if data else cases[0]
        return check_message(case, whole, data[1:])

    return Target(run, seeds)
