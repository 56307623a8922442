"""Token buckets: how often an address or an actor may ask."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BUCKETS = 10_000
_NETWORK_BITS = 64  # of an IPv6 address: what one customer commonly has


class _Bucket(NamedTuple):
    """`tokens` at the time `at`."""

    tokens: float
    at: float


class TokenBuckets:
    """Each key has `burst` tokens at first, and gets `rate` more a second up to that. At most `size` keys are kept: the
    one that was not used for the longest time is dropped, and so is full again. Several threads may use one.
    """

    def __init__(
        self, rate: float, burst: float, size: int = MAX_BUCKETS, clock: Callable[[], float] = monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._size = size
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, key: str) -> float:
        """0 if a token was taken, otherwise the seconds until there is one."""
        with self._lock:
            now = self._clock()
            bucket = self._buckets.pop(key, None)
            tokens = self._burst if bucket is None else bucket.tokens + (now - bucket.at) * self._rate
            tokens = min(tokens, self._burst)
            taken = tokens >= 1
            self._buckets[key] = _Bucket(tokens - 1 if taken else tokens, now)
            if len(self._buckets) > self._size:
                self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - tokens) / self._rate


def network_of(address: str) -> str:
    """Return the part of an address that a limit counts as one: an IPv4 address, or an IPv6 network of 64 bits."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _NETWORK_BITS), strict=False))
