"""nodetool's answers about token ranges are parsed, and its failures are reported."""

from __future__ import annotations

import sys

import pytest

from cassandra_storage.formats.primitives.token_ranges import TokenRange
from cdc_common.errors.codes import CdcError, Code
from publisher.snapshot.connections.nodetool import Nodetool, owned_ranges, replica_counts

DESCRIBED = """Schema Version:5b2a
TokenRange: 
\tTokenRange(start_token:-9223372036854775808, end_token:-3, endpoints:[10.0.0.1, 10.0.0.2], rpc_endpoints:[10.0.0.1, \
10.0.0.2], endpoint_details:[EndpointDetails(host:10.0.0.1, datacenter:dc1, rack:r1), EndpointDetails(host:10.0.0.2, \
datacenter:dc1, rack:r1)])
\tTokenRange(start_token:-3, end_token:9, endpoints:[10.0.0.2], rpc_endpoints:[10.0.0.1], endpoint_details:[])
\tTokenRange(start_token:9, end_token:-9223372036854775808, endpoints:[10.0.0.11,10.0.0.1], rpc_endpoints:[], \
endpoint_details:[EndpointDetails(host:10.0.0.11, datacenter:dc2, rack:r1), \
EndpointDetails(host:10.0.0.1, datacenter:dc1, rack:r1)])
"""  # noqa: W291 - as Cassandra prints it


def test_the_ranges_of_which_a_node_is_a_replica() -> None:
    least = -(1 << 63)
    assert owned_ranges(DESCRIBED, "ks", "10.0.0.1") == [TokenRange(least, -3), TokenRange(9, least)]
    assert owned_ranges(DESCRIBED, "ks", "10.0.0.2") == [TokenRange(least, -3), TokenRange(-3, 9)]


def test_the_ranges_of_which_a_node_is_the_first_replica_of_its_datacenter() -> None:
    least = -(1 << 63)
    first = owned_ranges(DESCRIBED, "ks", "10.0.0.1", only_primary=True)
    assert first == [TokenRange(least, -3), TokenRange(9, least)]  # before a replica of its own datacenter
    assert owned_ranges(DESCRIBED, "ks", "10.0.0.2", only_primary=True) == [TokenRange(-3, 9)]
    assert owned_ranges(DESCRIBED, "ks", "10.0.0.11", only_primary=True) == [TokenRange(9, least)]


def test_the_replicas_of_a_range_in_the_datacenter_of_a_node() -> None:
    least = -(1 << 63)
    assert replica_counts(DESCRIBED, "ks", "10.0.0.1") == [(TokenRange(least, -3), 2), (TokenRange(9, least), 1)]
    assert replica_counts(DESCRIBED, "ks", "10.0.0.2") == [(TokenRange(least, -3), 2), (TokenRange(-3, 9), 1)]


def test_a_node_without_a_range_is_refused() -> None:
    with pytest.raises(CdcError, match=r"describering ks names no token range of this node, 10\.0\.0\.3") as caught:
        owned_ranges(DESCRIBED, "ks", "10.0.0.3")
    assert caught.value.code is Code.NODETOOL_FAILED


def test_a_nodetool_that_fails_says_so() -> None:
    failing = [sys.executable, "-c", "import sys; print('no such keyspace', file=sys.stderr); sys.exit(2)"]
    with pytest.raises(CdcError, match=r"snapshot -t tag -cf t -- ks failed: no such keyspace\."):
        Nodetool(failing).take_snapshot("ks", "t", "tag")
    with pytest.raises(CdcError, match=r"publisher\.nodetool"):
        Nodetool(["/nowhere/nodetool"]).clear_snapshot("ks", "tag")


@pytest.mark.parametrize("options", [["-u", "cdc", "-pw", "geheim"], ["--username=cdc", "--password=geheim"]])
def test_a_nodetool_that_fails_does_not_tell_its_password(options: list[str]) -> None:
    """The error is in the log, and in /status, which anyone may ask for."""
    with pytest.raises(CdcError) as caught:
        Nodetool(["false", *options]).clear_snapshot("shop", "a")
    assert "geheim" not in str(caught.value)
    assert "cdc" in caught.value.problem
    assert "clearsnapshot -t a -- shop" in caught.value.problem
