# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/arguments.py: numbers and flags that callers pass, checked where they come in.
"""Arguments as the extension module takes them, or an error that names the argument."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .errors import InvalidArgument, InvalidType

_MANY = 2**59  # so that their bytes can be counted


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number of Python's or NumPy's, within limits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidType(f"{name} is {value!r}; expected a whole number") from None
    if not least <= number <= most:
        raise InvalidArgument(f"{name} {number}: expected a whole number from {least} to {most}")
    return number


def flag(name: str, value: Any) -> bool | None:
    """True or False, or None where the caller doesn't say."""
    if value is not None and not isinstance(value, bool):
        raise InvalidType(f"{name} is {value!r}; expected True, False or None")
    return value


def switch(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidType(f"{name} is {value!r}; expected True or False")
    return value


def either(name: str, value: Any) -> bool:
    """True or False, or 1 or 0, of Python's or NumPy's: not ``"U"``, which is true."""
    number = bool(value) if isinstance(value, np.bool_) else value
    if not isinstance(number, int | np.integer) or number not in (0, 1):
        raise InvalidType(f"{name} is {value!r}; expected True or False")
    return bool(number)


def text_of(name: str, value: Any, expected: str) -> str:
    """A text that says something; empty if the caller gives none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidType(f"{name} is {value!r}; expected {expected}")
    if not value.strip():
        raise InvalidArgument(f"{name} is {value!r}; expected {expected}, or None")
    return value


def path_of(name: str, value: Any) -> str:
    """A file's name; empty if the caller gives none."""
    if value is None:
        return ""
    try:
        found = os.fspath(value)
    except TypeError:
        found = b""
    if not isinstance(found, str):
        raise InvalidType(f"{name} is {value!r}; expected a path")
    if not found:
        raise InvalidArgument(f"{name} is an empty path; expected a file's name, or None")
    return found


def file_of(name: str, value: Any) -> str:
    """A file's name, as `open` takes it."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    raise InvalidType(f"{name} is {value!r}; expected a file's name: str, bytes or os.PathLike")


def device_index(device: Any, names: Sequence[str]) -> int:
    """The place of a device that is given by number or name."""
    if isinstance(device, str) and device in names:
        return names.index(device)
    is_number = hasattr(device, "__index__") and not isinstance(device, bool)
    if is_number and 0 <= operator.index(device) < len(names):
        return operator.index(device)
    raise InvalidArgument(f"no device {device!r}; there are {', '.join(names)}")


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape: one size, or several."""
    try:
        several = (shape,) if hasattr(shape, "__index__") else shape
        found = tuple(operator.index(size) for size in several)
    except TypeError:
        found = (-1,)
    if min(found, default=0) < 0 or prod(found) >= _MANY:
        raise InvalidArgument(
            f"shape {shape!r}: expected sizes of at least 0, and fewer than 2**59 elements"
        )
    return found


def seconds_of(timeout: float | None) -> float:
    """A timeout as the engine takes it: negative means forever."""
    if timeout is None:
        return -1.0
    try:
        valid = timeout >= 0
    except TypeError:
        valid = False
    if not valid:
        raise InvalidArgument(f"timeout {timeout!r}: expected seconds of at least 0, or None")
    return float(timeout)
