"""The filler's error codes: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.FILLER_PAUSED: Explanation(
        "Filler paused or waiting",
        meaning="""A node has too little room. Padding goes to every node of the datacenter, so no filler writes until
        that node has room again. Until then segments of idle tables take longer than `filler.max_segment_age_seconds`
        to reach CDC.""",
        cause="""`cdc_raw` of the node holds more than `filler.cdc_raw_percent` of its limit, or its disk is nearly
        full. The message says which.""",
        fix="""Look at the publisher beside that node: it deletes segments once they are published. Make room if the
        disk is full. The fillers continue by themselves.""",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.CASSANDRA_UNREACHABLE: (Scope.WAITS, Scope.START),
    Code.CASSANDRA_AUTH: (Scope.WAITS, Scope.START),
    Code.CASSANDRA_QUERY: (Scope.WAITS, Scope.START),
    Code.CDC_DISABLED: (Scope.WAITS, Scope.START),
    Code.CDC_RAW_MISSING: (Scope.WAITS, Scope.START),
    Code.SEGMENT_CORRUPT: (Scope.WAITS, Scope.START),
    Code.NODETOOL_FAILED: (Scope.WAITS,),
    Code.FILLER_PAUSED: (Scope.WAITS,),
}
"""How much of the program each code stops."""
