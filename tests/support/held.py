"""What an object keeps in memory: for tests of tables that must not grow."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from gc import get_referents

_CONTAINERS = (list, tuple, set, frozenset, deque, types.MethodType, types.CellType)


def held_texts(root: object) -> Iterator[str | bytes]:
    """Each text that is reached from this object through containers, methods and our own objects."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, str | bytes):
            yield one
        elif isinstance(one, dict):
            waiting += [*one, *one.values(), *getattr(one, "__dict__", {}).values()]
        elif isinstance(one, types.FunctionType):
            waiting += one.__closure__ or ()
        elif isinstance(one, _CONTAINERS) or type(one).__module__.startswith("hookproxy."):
            waiting += get_referents(one)


def held_long_texts(root: object, length: int) -> int:
    """How many texts of this length, or longer ones, are reached from this object."""
    return sum(len(one) >= length for one in held_texts(root))
