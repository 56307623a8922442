"""A bridge network for the containers of one cluster or broker, in which each has a fixed address of its own.

The addresses are picked before the engine is asked, as those of child processes are; processes on this machine reach
them. So nodes have the ports of a real cluster, and may be cut off from each other.
"""

from __future__ import annotations

import random
from typing import Any

from cdc_common.errors.codes import CdcError, Code

_GATEWAY = 254
NOT_INSTALLED = CdcError(
    Code.STACK_MISSING,
    "SERVERS=containers needs testcontainers, which is not installed.",
    "Run: pip install 'cassandra-cdc-materializer[containers]'",
)


class ContainerNetwork:
    """A network of 253 addresses: `create` makes it on the engine, `remove` removes it."""

    def __init__(self) -> None:
        self._block = f"10.{random.randint(64, 250)}.{random.randint(0, 255)}"  # noqa: S311 - any will do
        self._network: Any = None  # of testcontainers

    def address(self, number: int) -> str:
        """The address of the container with this number, from 1 on."""
        return f"{self._block}.{number}"

    def create(self) -> None:
        """Make it, unless it is there. CdcError STACK_MISSING without an engine."""
        if self._network is not None:
            return
        try:
            from docker.errors import DockerException  # noqa: PLC0415 - an extra of its own: [containers]
            from docker.types import IPAMConfig, IPAMPool  # noqa: PLC0415 - as above
            from testcontainers.core.network import Network  # noqa: PLC0415 - as above
        except ImportError as error:
            raise NOT_INSTALLED from error
        pool = IPAMPool(subnet=f"{self._block}.0/24", gateway=self.address(_GATEWAY))
        try:
            self._network = Network(docker_network_kw={"ipam": IPAMConfig(pool_configs=[pool])}).create()
        except (DockerException, OSError) as error:
            raise CdcError(
                Code.STACK_MISSING,
                f"No Docker engine answers, or it makes no network: {error}.",
                "Start one (systemctl start docker), or leave SERVERS=containers away: child processes need no engine.",
            ) from error

    def options(self, address: str) -> dict[str, Any]:
        """The options of a container that has this address."""
        from docker.types import EndpointConfig  # noqa: PLC0415 - an extra of its own: [containers]

        endpoint = EndpointConfig("1.41", ipv4_address=address)
        return {"network": self._network.name, "networking_config": {self._network.name: endpoint}}

    def remove(self) -> None:
        """Remove it, if it was made; none of its containers is there any more."""
        if self._network is not None:
            self._network.remove()
            self._network = None
