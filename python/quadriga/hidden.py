# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/hidden.py: whether an object leads to an array of some memory.
"""Looks through objects of any type, as the garbage collector does.

A result that hides an operand's array on a core keeps memory that stays, but that later tasks
write. What the program itself has is its own: objects that the body's function or its parameters
lead to aren't looked into, nor are modules, types, stack frames and objects of this package.
"""

from __future__ import annotations

import contextlib
import gc
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

MOST = 1_000_000  # objects that are looked at, which takes about a second
_HAVE_GC = 1 << 14  # Py_TPFLAGS_HAVE_GC: of types whose objects lead to others
_CLOSED = (
    type, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType,
    weakref.ref, str, bytes, int, float, complex, type(None),
)  # fmt: skip
_INTERFACES = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")


class TooMany(Exception):
    """An object leads to more others than are looked at."""


def leads_to(value: Any, is_operand: Callable[[Any], bool], own: Iterable[Any]) -> bool:
    """Whether an object leads to an operand's array.

    Parameters
    ----------
    value : object
    is_operand : callable
        Whether an array is of an operand's memory.
    own : iterable of object
        The body's function and its parameters.

    Raises
    ------
    TooMany
        If what isn't the program's own is too much.
    """
    with contextlib.suppress(TooMany):  # most of which may be the program's own
        if not _leads_to(value, is_operand, {}):
            return False
    known: dict[int, Any] = {}
    for each in own:
        with contextlib.suppress(TooMany):  # then less counts as the program's own
            for _ in _reached([each, *_globals_of(each)], known):
                pass
    return _leads_to(value, is_operand, {k: v for k, v in known.items() if not _is_array(v)})


def _leads_to(value: Any, is_operand: Callable[[Any], bool], met: dict[int, Any]) -> bool:
    arrays: dict[type, bool] = {}
    for each in _reached([value], met):
        kind = type(each)
        if kind not in arrays:
            arrays[kind] = _is_array(each)
        if arrays[kind] and is_operand(each):
            return True
    return False


def _reached(begin: list[Any], met: dict[int, Any]) -> Iterator[Any]:
    """What some objects lead to, but for what was met before; nearest first."""
    level, most = begin, len(met) + MOST
    closed: dict[type, bool] = {}  # whether objects of a type lead nowhere
    while level:
        found: list[Any] = []
        for each in level:
            kind = type(each)
            if kind not in closed:
                closed[kind] = issubclass(kind, _CLOSED)
            if closed[kind] or id(each) in met:
                continue
            if len(met) >= most:
                raise TooMany
            met[id(each)] = each
            yield each
            found += _held_by(each)
        level = found


def _held_by(value: Any) -> Iterable[Any]:
    if isinstance(value, np.ndarray):
        held = value.tolist() if value.dtype.hasobject else []
        return [*held, *getattr(value, "__dict__", {}).values()]  # of a class derived from arrays
    if isinstance(value, types.FunctionType):  # its module's names aren't its own
        parts = value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__
        return [each for each in parts if each]
    if isinstance(value, np.flatiter):
        return (value.base,)
    if isinstance(value, np.nditer):
        return value.operands
    if isinstance(value, np.broadcast):
        return value.iters
    if isinstance(value, types.BuiltinMethodType):
        return (value.__self__,)
    kind = type(value)
    if not kind.__flags__ & _HAVE_GC or str(kind.__module__).partition(".")[0] == "quadriga":
        return ()
    return gc.get_referents(value)


def _globals_of(body: Any) -> list[Any]:
    """What a function's code finds in its module by name."""
    code = getattr(body, "__code__", None)
    if not isinstance(code, types.CodeType):
        return []
    names = getattr(body, "__globals__", {})
    return [names[name] for name in code.co_names if name in names]


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, memoryview)) or any(
        hasattr(type(value), name) for name in _INTERFACES
    )
