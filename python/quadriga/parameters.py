# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/parameters.py: what a task keeps of the parameters that it is given by name.
"""Parameters as they were when a task was submitted: read-only copies of what could change.

A copy raises where a body writes to it, so that a body which means to return something by a
parameter gets an error instead of losing it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from . import _core, mapped, registered
from .errors import InvalidType

DEEPEST = 8  # holders in holders
#: Types whose objects never change; most parameters are of one of them.
_CONSTANT = frozenset({int, float, complex, bool, str, bytes, type(None), range, slice, type})
#: What makes values of other types read-only ones.
FROZEN: dict[type, Callable[[Any], Any]] = {
    set: frozenset,
    bytearray: bytes,
    memoryview: memoryview.toreadonly,
}
#: Copies, with what they were made of, by its identity and its depth, which is 0 of arrays: it may
#: be given more than once, and a list may hold itself.
Made = dict[tuple[int, int], tuple[Any, Any]]
_ADVICE = "return a value from the body instead, or copy the parameter"


def _refuse(self: object, *_: Any, **__: Any) -> NoReturn:
    kind = type(self).__base__
    assert kind is not None
    raise InvalidType(
        f"a task's parameter is a read-only copy of the {kind.__name__} that was given: {_ADVICE}"
    )


class FrozenList(list[Any]):
    """A list as it was when the task was submitted."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return list, (list(self),)


class FrozenDict(dict[Any, Any]):
    """A dict as it was when the task was submitted."""

    __slots__ = ()
    update = setdefault = pop = popitem = clear = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)


def frozen(parameters: dict[str, Any], files: mapped.Files | None = None) -> dict[str, Any]:
    """The parameters; what the program could still write is replaced by read-only copies.
    `files` watch those in mapped files.

    Raises `registered.ContentLost` if a task failed that should have written one of them, `IoError`
    if a mapped file became shorter.
    """
    made: Made = {}
    for name, value in parameters.items():
        if type(value) not in _CONSTANT:
            parameters[name] = _frozen(value, 0, made)
    if files is not None and mapped.is_used():
        for each in leaves(parameters.values()):
            files.watch(each)
    return parameters


def rebuilt(value: Any, depth: int, make: Callable[[Any, int, Made], Any], made: Made) -> Any:
    """A holder of other values with what a function makes of these; other values as they are."""
    if depth >= DEEPEST or (held := held_by(value)) is None:
        return value
    key = (id(value), depth)
    if (known := made.get(key)) is not None:
        return known[1]
    kind = type(value)
    copy: Any
    each_made = [make(each, depth + 1, made) for each in held]
    if kind in (dict, FrozenDict):
        copy = FrozenDict(zip(value, each_made, strict=True))
    elif kind is tuple:
        copy = tuple(each_made)
    else:
        copy = kind._make(each_made) if is_named_tuple(value) else FrozenList(each_made)
    made[key] = value, copy
    return copy


def is_named_tuple(value: Any) -> bool:
    """Whether it is of a type that `collections.namedtuple` made, or one derived from it."""
    return isinstance(value, tuple) and hasattr(type(value), "_make")


def held_by(value: Any) -> Any:
    """The values in a holder; None if it is none."""
    kind = type(value)
    if kind in (dict, FrozenDict):
        return value.values()
    if kind in (list, FrozenList, tuple) or is_named_tuple(value):
        return value
    return None


def leaves(values: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    """Some values, and instead of holders what these hold."""
    for each in values:
        held = held_by(each) if depth < DEEPEST else None
        if held is None:
            yield each
        else:
            yield from leaves(held, depth + 1)


def frozen_value(value: Any) -> Any:
    """A value, or a read-only copy if the program could still write it."""
    return _frozen(value, 0, {})


def _frozen(value: Any, depth: int, made: Made) -> Any:
    kind = type(value)
    if kind in _CONSTANT:
        return value
    mapped.watch(value)
    if kind is memoryview:
        _settle(value)
        memory = _memory_of(value)
        _check_read(value)
        return memory
    if kind in FROZEN:
        if kind is bytearray and value:
            _settle(value)
        return FROZEN[kind](value)
    is_array = isinstance(value, np.ndarray)
    if is_array and not is_writeable(value):
        return value
    if not is_array:
        return rebuilt(value, depth, _frozen, made)
    known = made.get((id(value), 0))
    if known is None:
        _settle(value)
        known = made[id(value), 0] = value, copy_of(value)
        _check_read(value)
    return known[1]


def _settle(value: Any) -> None:
    """Wait for pending tasks on some memory, but for bodies: their task may be one of these."""
    if registered.engines and not _core.inside_body():
        registered.settle_for_task(np.asarray(value))


def _check_read(value: Any) -> None:
    """Raises IoError if zeros were copied instead of what a mapped file has no more."""
    if (error := mapped.failure_of([value])) is not None:
        raise error


def copy_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only copy, which takes no more memory than the elements lie in: windows overlap."""
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    size = sum(map(abs, steps)) + array.itemsize
    if size < array.nbytes and type(array) is np.ndarray and not array.dtype.hasobject:
        before = -sum(min(step, 0) for step in steps)
        memory = ctypes.string_at(array.ctypes.data - before, size)
        return np.ndarray(array.shape, array.dtype, memory, before, array.strides)
    copy = array.copy(order="K")
    copy.flags.writeable = False
    return copy


def _memory_of(lent: memoryview) -> Any:
    if lent.readonly and isinstance(lent.obj, bytes):
        return lent
    if lent.format == "c" and lent.nbytes > 0:  # which NumPy has no type for
        return memoryview(lent.tobytes()).cast("c", lent.shape or ())
    return copy_of(np.asarray(lent)).data


def is_writeable(array: np.ndarray[Any, Any]) -> bool:
    """Whether the program may write its elements, by itself or by another view of its memory.

    An array that owns its memory may have had views before it was made read-only.
    """
    each: Any = array
    while isinstance(each, np.ndarray):
        if each.flags.writeable or each.flags.owndata:
            return True
        each = each.base
    if each is None:
        return False
    try:
        lent = memoryview(each)
        return not (lent.readonly and memoryview(lent.obj).readonly)
    except (TypeError, ValueError):  # it lends its memory by other means
        return True


def own_copy(value: Any) -> Any:
    """A value with copies of its arrays, lists, dictionaries and the like, which may be written."""
    return _own(value, 0, {})


def _own(value: Any, depth: int, made: Made) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if type(value) in (set, bytearray):
        return value.copy()
    copy = rebuilt(value, depth, _own, made)
    if copy is not value and isinstance(copy, FrozenList):
        return list(copy)
    return dict(copy) if copy is not value and isinstance(copy, FrozenDict) else copy
