# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/results.py: what a body returns, made to refer to no operand.
"""Results outlive the operands that they were computed from.

An operand's view is of memory that the engine reuses once the task has ended, or is the user's
array, which later tasks write. Arrays that overlap it are copied. An object of another type is
refused if it keeps a view's memory or leads to the array, since later uses would read other
content. So is a body that keeps a view of memory that ends elsewhere, as in a list of its module.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import inspect
import sys
import time
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .device_arrays import bytes_of
from .errors import InvalidType
from .failures import set_member
from .foreign import DeviceArray, seen
from .hidden import MOST, TooMany, leads_to
from .layout import Layout
from .parameters import FrozenDict, FrozenList

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, np.generic)
_LOOKS, _PAUSE = 20, 0.005  # seconds
_SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DEEPEST = 32  # containers inside of containers; what is deeper counts as one that hides things
_SHALLOW = 2  # from here on holders are known again, as children that hold their parents come often


def owned(
    held: list[Any],
    places: Sequence[tuple[Layout, int, int]],
    memories: list[Any],
    own: Iterable[Any] = (),
) -> Any:
    """A value, its arrays copied where they overlap operands.

    Parameters
    ----------
    held : list
        A body's result alone, which leaves it: nobody else may refer to it.
    places : sequence of (Layout, int, int)
        Layout, address and leading dimension of each operand.
    memories : list
        What keeps the memory of views that end with the task; nobody else but a view refers to it.
    own : iterable of object
        The body's function and its parameters: what they lead to is the program's own.

    Raises
    ------
    InvalidType
        If something in the value that can't be copied keeps such memory, or leads to an operand.
    """
    if isinstance(held[0], _PLAIN) and not isinstance(held[0], np.void):
        return held.pop()
    walk = _Walk(places)
    found = walk.owned(held.pop())
    walk.made.clear()  # it may keep what was copied
    if not walk.hidden:
        return found
    if _is_kept(memories):
        _drop_leftovers(memories)
    if _is_kept(memories):
        what = "memory, which ends with the task"
    else:
        try:
            if not any(leads_to(each, walk.is_operand, own) for each in walk.hidden):
                return found
        except TooMany:
            raise InvalidType(
                f"its result, of type {type(found).__name__}, leads to more than {MOST:,} objects, "
                "and one of them may be an operand's array: return arrays, numbers or containers"
            ) from None
        what = "array, which later tasks may write"
    raise InvalidType(
        f"its result, of type {type(found).__name__}, refers to an operand's {what}: return a copy "
        "of what it needs"
    )


def refuse_kept(who: str, what: str, memories: list[Any]) -> None:
    """Raise `InvalidType`, which says who keeps what, if a view outlives the body that got it."""
    if not _is_kept(memories):
        return
    time.sleep(0)  # a thread that the body used is mostly about to drop its view
    if _is_kept(memories):
        _drop_leftovers(memories)
    for _ in range(_LOOKS):
        if not _is_kept(memories):
            return
        time.sleep(_PAUSE)
    raise InvalidType(f"{who} keeps a view of {what}, whose memory ends with the task: keep a copy")


def own_arguments(
    exception: BaseException,
    places: Sequence[tuple[Layout, int, int]],
    memories: list[Any],
    own: Sequence[Any] = (),
) -> None:
    """The same for the arguments and attributes of an exception and of those that led to it.

    What can't be copied is replaced by its type; not what is too large to be looked into, if no
    operand's memory ends with the task.
    """
    for each in causes_of(exception):
        if not all(isinstance(argument, _PLAIN) for argument in each.args):
            carried = [[argument] for argument in each.args]
            set_member(each, "args", ())
            set_member(each, "args", tuple(_own_of(k, places, memories, own) for k in carried))
        for member in _members_of(each):
            held = [member.__get__(each)]
            with contextlib.suppress(AttributeError, TypeError):  # it is read-only
                member.__set__(each, None)
                member.__set__(each, _own_of(held, places, memories, own))
        attributes = getattr(each, "__dict__", {})
        for name in list(attributes):
            attributes[name] = _own_of([attributes.pop(name)], places, memories, own)


def _members_of(exception: BaseException) -> list[types.MemberDescriptorType]:
    """What holds objects beside its dictionary: slots, and members as `AttributeError.obj`."""
    found = []
    for kind in type(exception).__mro__:
        for member in vars(kind).values():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    if not isinstance(member.__get__(exception), _PLAIN):
                        found.append(member)
    return found


def causes_of(exception: BaseException) -> list[BaseException]:
    """An exception, its causes, contexts and arguments, and the members of groups, each once."""
    found: dict[int, BaseException] = {}
    left: list[BaseException | None] = [exception]
    while left:
        each = left.pop()
        if each is None or id(each) in found:
            continue
        found[id(each)] = each
        left += [each.__cause__, each.__context__]
        for argument in each.args:  # of a group: its members
            left += _exceptions_of(argument)
    return list(found.values())


def _exceptions_of(value: Any) -> list[BaseException]:
    """An exception, or those of a sequence of nothing else."""
    several = value if isinstance(value, (list, tuple)) else [value]
    return list(several) if all(isinstance(each, BaseException) for each in several) else []


def _own_of(
    held: list[Any],
    places: Sequence[tuple[Layout, int, int]],
    memories: list[Any],
    own: Sequence[Any],
) -> Any:
    name = type(held[0]).__name__
    given = None if memories else held[0]
    if _exceptions_of(held[0]):
        return held[0]  # these are looked at by themselves
    try:
        return owned(held, places, memories, own)
    except InvalidType as error:
        if given is not None and isinstance(error.__context__, TooMany):
            return given
        return f"<{name} of an operand>"


def _is_kept(memories: list[Any]) -> bool:
    return any(sys.getrefcount(memories[index]) > 2 for index in range(len(memories)))


def _drop_leftovers(memories: list[Any]) -> None:
    """What only looks as if it kept a view: circles of objects, and frames of ended calls.

    A body that catches another task's failure leaves its frame in that failure's traceback.
    """
    gc.collect()
    for each in gc.get_objects():
        # A generator's frame is in use until the generator has ended.
        if (
            isinstance(each, types.FrameType)
            and not each.f_code.co_flags & _SUSPENDABLE
            and any(_is_view(local, memories) for local in gc.get_referents(each))
        ):
            with contextlib.suppress(RuntimeError):  # it goes on
                each.clear()


def _is_view(value: Any, memories: list[Any]) -> bool:
    while isinstance(value, np.ndarray):
        value = value.base
        if any(value is memory for memory in memories):
            return True
    return False


class _Walk:
    """Goes through one value."""

    def __init__(self, places: Sequence[tuple[Layout, int, int]]) -> None:
        self._spans = [range(begin, begin + bytes_of(layout, ld)) for layout, begin, ld in places]
        self.hidden: list[Any] = []  # What it met that it can't look into.
        # Holders that it met deep inside, by their identity and depth, with what became of them: a
        # child may hold its parent, which holds it.
        self.made: dict[tuple[int, int], tuple[Any, Any]] = {}

    def owned(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, np.void):  # an element of several fields is a view
            return value.copy()
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, (tuple, list, dict)) and depth < _DEEPEST:
            known = self.made.get((id(value), depth)) if depth >= _SHALLOW else None
            if known is None:
                is_dict = isinstance(value, dict)
                walk: Callable[[Any, int], Any] = self._dictionary if is_dict else self._sequence
                known = value, walk(value, depth)
                if getattr(value, "__dict__", None) or hasattr(value, "default_factory"):
                    self.hidden.append(known[1])
                if depth >= _SHALLOW:
                    self.made[id(value), depth] = known
            return known[1]
        span = span_of(value)
        if span is None:
            self.hidden.append(value)
            return value
        # An empty view has no bytes, and keeps an operand's memory.
        if self._overlaps(span) or (len(span) == 0 and getattr(value, "base", None) is not None):
            value = _copied(value)
        if isinstance(value, np.ndarray) and (
            value.dtype.hasobject or getattr(value, "__dict__", None)
        ):
            self.hidden.append(value)
        return value

    def is_operand(self, array: Any) -> bool:
        """Whether an array overlaps an operand."""
        span = span_of(array)
        return span is not None and self._overlaps(span)

    def _overlaps(self, span: range) -> bool:
        return any(span.start < each.stop and each.start < span.stop for each in self._spans)

    def _sequence(self, value: Any, depth: int) -> Any:
        items = [self.owned(each, depth + 1) for each in value]
        if isinstance(value, FrozenList):
            return items
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        if isinstance(value, tuple):
            return value._make(items) if hasattr(value, "_make") else tuple(items)
        changed = copy.copy(value)
        changed[:] = items
        return changed

    def _dictionary(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        items = {key: self.owned(each, depth + 1) for key, each in value.items()}
        if isinstance(value, FrozenDict):
            return items
        if all(items[key] is value[key] for key in value):
            return value
        changed = copy.copy(value)
        changed.update(items)
        return changed


def span_of(value: Any) -> range | None:
    """The bytes of an array, wherever it lies; None if it is none."""
    try:
        array = np.asarray(value) if isinstance(value, (memoryview, bytearray)) else seen(value)
    except Exception:  # an object's own lookups may raise anything
        return None
    if isinstance(array, DeviceArray):
        return array.span
    if not isinstance(array, np.ndarray):
        return None
    begin = array.ctypes.data
    if array.size == 0:
        return range(begin, begin)
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    first = begin + sum(min(step, 0) for step in steps)
    return range(first, begin + sum(max(step, 0) for step in steps) + array.itemsize)


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    for name in ("clone", "copy"):  # PyTorch's, everybody else's
        if hasattr(value, name):
            return getattr(value, name)()
    raise InvalidType(
        f"its result, of type {type(value).__name__}, is a view of an operand, which ends with the "
        "task: return a copy"
    )
