# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/returned.py: what kernels return, as fields of their chunk.
"""Arrays of sizes that nobody knows before the kernel has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codelets import Codelet, Cost
from ..cuda_source import CudaSource
from ..errors import InvalidArgument, InvalidType
from ..foreign import offers
from ..layout import Layout, layout_of, layout_of_new
from . import given
from .chunk import Chunk
from .fields import refuse_masked

Most = Callable[[Chunk], int]


@dataclass
class Returned:
    """A field that a kernel returns."""

    name: str
    most: Most | None  # its bytes, at most
    fill: Codelet  # writes it on a device


def fields(returns: Any, stage: Codelet) -> list[Returned]:
    """What a kernel's argument `returns` says."""
    if returns is None:
        return []
    if isinstance(stage.cuda, CudaSource):
        raise InvalidArgument(
            f"kernel '{stage.name}': a CudaSource returns nothing; state what it writes"
        )
    listed: Mapping[str, Any]
    if isinstance(returns, str):
        listed = {returns: None}
    elif isinstance(returns, Mapping):
        listed = returns
    elif isinstance(returns, Sequence):
        listed = dict.fromkeys(returns)
    else:
        listed = {}
    if not listed or any(not isinstance(name, str) for name in listed):
        raise InvalidType(
            f"returns is {returns!r}; expected a field's name, a list of names, or a dict from "
            "names to most bytes"
        )
    on_cuda = stage.cuda is not None
    arrays = stage.arrays.library if stage.arrays is not None and on_cuda else None
    fill = Codelet(
        _fill,
        ["write"],
        name=stage.name,
        host_only=False,
        cost=Cost.of_seconds(0),
        arrays=arrays,
    )
    return [Returned(name, _most(name, most), fill) for name, most in listed.items()]


def value_of(returned: Any, stage: str, names: Sequence[str], index: int) -> Any:
    """One of the arrays that a body returned."""
    if len(names) > 1:
        if not isinstance(returned, (tuple, list)) or len(returned) != len(names):
            number = len(returned) if isinstance(returned, (tuple, list)) else 1
            raise InvalidType(
                f"kernel '{stage}' returns {number} values, expected {len(names)}: "
                + ", ".join(names)
            )
        returned = returned[index]
    if offers(returned, "__cuda_array_interface__"):
        return returned
    refuse_masked(f"{names[index]!r}, which kernel '{stage}' returns,", returned)
    if returned is None or isinstance(returned, (str, bytes, Mapping, list, tuple)):
        raise InvalidType(
            f"kernel '{stage}' returns {names[index]!r} as {type(returned).__name__}; expected an "
            "array"
        )
    return np.asarray(returned)


def adopted(array: Any) -> np.ndarray[Any, Any]:
    """An array on the host that can be a field: itself, if it can be used and written in place."""
    if not isinstance(array, np.ndarray):
        raise InvalidType(
            f"a kernel on the host returns arrays on the host, got {type(array).__name__}"
        )
    try:
        layout_of(array)
    except InvalidArgument:
        if array.dtype.hasobject:
            raise
        return np.array(array, order="C")
    return array if array.flags.writeable else array.copy(order="K")


def layout_there(value: Any) -> Layout:
    """Of a tile on a device with an array's elements, rows one after the other."""
    return layout_of_new(tuple(map(int, value.shape)), _dtype_of(value))


def _fill(into: Any, made: Any) -> None:
    into[...] = made


def _dtype_of(value: Any) -> np.dtype[Any]:
    """Also of tensors, whose types have names of their own."""
    name = str(value.dtype).removeprefix("torch.")
    try:
        return np.dtype(value.dtype if name == str(value.dtype) else name)
    except TypeError as error:
        raise InvalidType(f"arrays of {value.dtype} have no type in NumPy") from error


def _most(name: str, value: Any) -> Most | None:
    if value is None:
        return None
    if callable(value):
        return lambda chunk: int(value(chunk))
    stated = given.byte_count(f"the bytes of {name!r}", value)
    return lambda _: stated
