"""Arguments of wrong shapes: what only a defect of our own Python code could give the native core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.materializer.memory_state import MemoryState

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

_NUMBERS = (0, 1, -1, 2, 3, 5, 8, 15, 17, 63, 64, 127, 255, 1000, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63))
_ODD: Sequence[object] = (
    None,
    b"",
    b"\0",
    b"x" * 300,
    "",
    "integer",
    "uuid",
    "list_cells",
    "field",
    (),
    [],
    {},
    1.5,
    True,
    2**70,
)


def reshaped(rng: random.Random, value: Any, share: float = 0.1) -> Any:  # noqa: ANN401 - arguments of any kind
    """A copy in which some part may be another one, missing or there twice. Objects of other types are kept."""
    if rng.random() < share:
        return rng.choice(_NUMBERS) if isinstance(value, int) and rng.random() < 0.8 else rng.choice(_ODD)
    if isinstance(value, (tuple, list)):
        parts = [reshaped(rng, item, share) for item in value]
        if parts and rng.random() < share / 2:
            at = rng.randrange(len(parts))
            parts[at : at + 1] = rng.choice(([], [parts[at]] * 2, [parts[at]] * 70))
        if len(parts) == len(value) and all(new is old for new, old in zip(parts, value, strict=True)):
            return value  # itself: what is written to it must be seen
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict) and rng.random() < share:
        return {_reshaped_key(rng, key, share): reshaped(rng, item, share) for key, item in value.items()}
    if isinstance(value, bytes) and rng.random() < share:
        return value[: rng.randrange(len(value) + 1)]
    return value


def _reshaped_key(rng: random.Random, key: Any, share: float) -> Any:  # noqa: ANN401
    changed = reshaped(rng, key, share)
    try:
        hash(changed)
    except TypeError:
        return key
    return changed


class Reshaped:
    """Wraps what takes arguments, so that a share of their parts is of another shape."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share

    def maybe(self, value: Any) -> Any:  # noqa: ANN401
        return reshaped(self._rng, value, self._share)

    def wrap(self, made: Callable[..., Any], *methods: str) -> Callable[..., Any]:
        """`methods`: of what it returns, which are wrapped too."""

        def call(*arguments: object, **named: object) -> Any:  # noqa: ANN401
            found = made(*self.maybe(arguments), **{name: self.maybe(argument) for name, argument in named.items()})
            return _Wrapped(self, found, methods) if methods else found

        return call


class _Wrapped:
    def __init__(self, shapes: Reshaped, of: object, methods: tuple[str, ...]) -> None:
        self._shapes = shapes
        self._of = of
        self._methods = methods

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._of, name)
        return self._shapes.wrap(found) if name in self._methods else found


class ReshapedState(MemoryState):
    """A state that may give what is no value."""

    def __init__(self, shapes: Reshaped) -> None:
        super().__init__()
        self._shapes = shapes

    def get(self, key: bytes) -> Any:  # noqa: ANN401
        return self._shapes.maybe(super().get(key))

    def get_many(self, keys: Sequence[bytes]) -> Any:  # noqa: ANN401
        return self._shapes.maybe(super().get_many(keys))
