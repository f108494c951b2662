# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/given.py: arguments of a pipeline and its stages, checked.
"""What users give a pipeline, and what is said if it is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import InvalidArgument, InvalidType
from .chunk import Seconds, Shape

ORDERS = {"adaptive": 0, "largest": 1, "first_come": 2, "smallest": 3}
MODES = ("parallel", "serial", "serial_in_order")
MOST = 2**31 - 1


def byte_count(name: str, value: int | str | None) -> int:
    if value is None:
        return 0
    found = _core.parse_bytes(str(value))
    if found <= 0:
        raise InvalidArgument(f"{name} is {value!r}; expected bytes, such as '4GiB'")
    return int(found)


def order(value: str) -> int:
    if value not in ORDERS:
        raise InvalidArgument(f"order is {value!r}; expected one of {', '.join(ORDERS)}")
    return ORDERS[value]


def reuses(value: bool | None) -> bool | None:
    if value not in (None, True, False):
        raise InvalidArgument(f"reuses is {value!r}; expected True, False or None")
    return value


def names(what: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str) or any(not isinstance(each, str) for each in names):
        raise InvalidType(f"{what} is {names!r}; expected a list of names of fields")
    return list(names)


def shape(name: str, shape: Any) -> Shape:
    """Of a field: a function of the chunk, or one (shape, dtype) of all chunks."""
    if callable(shape):
        return shape  # type: ignore[no-any-return]
    if not isinstance(shape, tuple) or len(shape) != 2 or not _is_type(shape[1]):
        raise InvalidType(
            f"the shape of {name!r} is {shape!r}; expected (shape, dtype), or a function of the "
            "chunk that returns them"
        )
    return lambda _: shape


def _is_type(value: Any) -> bool:
    try:
        np.dtype(value)
    except TypeError:
        return False
    return value is not None  # which NumPy takes for float64


def seconds(stage: str, value: Any) -> Seconds:
    if callable(value):
        return value  # type: ignore[no-any-return]
    stated = float(value)
    if not 0 <= stated < float("inf"):
        raise InvalidArgument(f"what {stage!r} takes is {value!r}; expected seconds")
    return lambda _: stated


def mode(value: str) -> str:
    if value not in MODES:
        raise InvalidArgument(f"mode is {value!r}; expected one of {', '.join(MODES)}")
    return value


def title(what: str, function: Any, name: str | None) -> str:
    """The name of a stage on the host."""
    if not callable(function):
        raise InvalidType(f"{what} takes a function of a chunk, got {type(function).__name__}")
    return name or str(getattr(function, "__name__", what))
