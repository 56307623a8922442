"""The error codes of joins: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.JOIN_PLAN: Explanation(
        "Join does not fit",
        meaning="""A join of a joins file does not fit the newest schemas of its inputs; the message says which and
        why.""",
        cause="""A column does not exist, two compared columns have types whose values are never equal, two columns of
        the joined rows have one name, or an input's topic has no change envelopes.""",
        fix="""Correct the join, then run `cassandra-joinery check` again ([guide](../guides/joins.md)).""",
    ),
    Code.JOIN_INPUT: Explanation(
        "Input cannot be joined",
        meaning="""The catalogue assigns several topics to an input of a join.""",
        cause="""The source got another key, or a schema that its first topic does not take. Its rows are in several
        topics, and a join reads one.""",
        fix="""Disable the topics that nothing is written to any more, or join another source.""",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.REGISTRY_UNREACHABLE: (Scope.COMMAND,),
    Code.REGISTRY_REFUSED: (Scope.COMMAND,),
    Code.JOIN_PLAN: (Scope.COMMAND,),
    Code.JOIN_INPUT: (Scope.COMMAND,),
}
"""How much of the program each code stops."""
