# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/reduction.py: results of all chunks, added up where the chunks are.
"""Reductions as NumPy's: over axes of a field, and over all chunks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from .. import _core
from ..codelets import Codelet, Cost
from ..cuda_source import CudaSource
from ..errors import InvalidArgument, InvalidType
from ..layout import Layout, layout_of_new
from ..results import refuse_kept
from .chunk import Chunk

_UFUNCS = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum}
_METHODS = {"sum": "sum", "mean": "sum", "max": "amax", "min": "amin"}

Array = np.ndarray[Any, Any]


class Tally:
    """How much a chunk adds to each element of the result; counted once, however often it runs."""

    __slots__ = ("count", "reduction")

    def __init__(self, reduction: Reduction, count: int) -> None:
        self.reduction = reduction
        self.count = count

    def take(self) -> None:
        self.reduction.count += self.count
        self.count = 0


class Reduction:
    """A result of all chunks: its parts on devices, and how they become one.

    Attributes
    ----------
    name : str
        Of the result.
    field : str
        What is reduced.
    codelet : Codelet
        Adds a chunk's field to a part.
    layout : Layout or None
        Of the result, once the first chunk is known.
    count : int
        Elements of chunks for each element of the result.
    """

    def __init__(self, name: str, field: str) -> None:
        self.name = name
        self.field = field
        self.layout: Layout | None = None
        self.count = 0
        self.codelet: Codelet

    def begin(self, address: int) -> None:
        """Set a part to the neutral element."""
        raise NotImplementedError

    def combine(self, into: int, part: int) -> None:
        """Add one part to another, on the host."""
        raise NotImplementedError

    def parameters(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """What the codelet is called with for a field of this shape, beside the operands."""
        del shape
        return {}

    def shape_of(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Layout:
        """The layout of the result, from a chunk's field."""
        raise NotImplementedError

    def result(self, address: int) -> Array:
        """The result, from what all parts have become."""
        return self._at(address).copy()

    def is_of_nothing(self) -> bool:
        """Whether it has elements, and NumPy has no value for them."""
        return False

    def _at(self, address: int) -> Array:
        assert self.layout is not None
        return self.layout.view(address, self.layout.ld, True)


class Reduced(dict[str, Array]):
    """Results by name. What is missing raises `InvalidArgument`, which says why."""

    def __init__(self, stages: Iterable[Any], why: str) -> None:
        uses = (use for stage in stages for use in stage.uses)
        self._why = {use.reduction.name: why for use in uses if use.reduction is not None}

    def add(self, reduction: Reduction, address: int) -> None:
        """A result, unless it is none."""
        if reduction.is_of_nothing():
            self._why[reduction.name] = "it is a maximum or minimum of no elements"
        else:
            self[reduction.name] = reduction.result(address)

    def __missing__(self, name: str) -> Array:
        known = ", ".join(map(repr, self._why)) or "none"
        why = self._why.get(name, f"no reduce() makes it; they make {known}")
        raise InvalidArgument(f"there is no result {name!r}: {why}")


class Named(Reduction):
    """One of NumPy's: sum, mean, max, min."""

    def __init__(
        self,
        name: str,
        field: str,
        op: str,
        axis: int | tuple[int, ...] | None,
        dtype: Any,
        arrays: str,
        cost: Cost | None,
    ) -> None:
        super().__init__(name, field)
        if axis is not None and not isinstance(axis, (int, tuple)):
            raise InvalidType(f"axis is {axis!r}; expected a number, a tuple or None")
        self._op = op
        self._axis = axis
        self._dtype = None if dtype is None else np.dtype(dtype)
        self.codelet = Codelet(
            self._on_host,
            ["read", "update"],
            name=name,
            host_only=False,
            cost=cost,
            cuda=self._on_device,
            arrays=arrays,
        )

    def shape_of(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Layout:
        axes = self._axes(len(shape))
        kind = self._dtype
        if kind is None:
            ones = np.ones(1, dtype)
            kind = getattr(np, self._op)(ones).dtype
        if _UFUNCS[self._op] is not np.add:
            _extreme(kind, True)
        kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
        return layout_of_new(kept, kind)

    def parameters(self, shape: tuple[int, ...]) -> dict[str, Any]:
        axes = self._axes(len(shape))
        return {"axes": axes, "tally": Tally(self, prod(shape[axis] for axis in axes))}

    def begin(self, address: int) -> None:
        part = self._at(address)
        part[...] = 0 if _UFUNCS[self._op] is np.add else _extreme(part.dtype, self._op == "max")

    def combine(self, into: int, part: int) -> None:
        target = self._at(into)
        _UFUNCS[self._op](target, self._at(part), out=target)

    def is_of_nothing(self) -> bool:
        assert self.layout is not None
        return self._op in ("max", "min") and self.count == 0 and prod(self.layout.shape) > 0

    def result(self, address: int) -> Array:
        found = super().result(address)
        if self._op != "mean":
            return found
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(found / self.count).astype(found.dtype)

    def _axes(self, ndim: int) -> tuple[int, ...]:
        given = self._axis
        listed = range(ndim) if given is None else (given,) if isinstance(given, int) else given
        if any(not -ndim <= axis < ndim for axis in listed):
            raise InvalidArgument(f"axis {given} of field {self.field!r}, which has {ndim} axes")
        return tuple(axis % ndim for axis in listed)

    def _on_host(self, x: Array, into: Array, *, axes: tuple[int, ...], tally: Tally) -> None:
        ufunc = _UFUNCS[self._op]
        if x.size:
            part = ufunc.reduce(x, axis=axes, dtype=into.dtype) if axes else x
            ufunc(into, part, out=into, casting="unsafe")
        tally.take()

    def _on_device(self, x: Any, into: Any, *, axes: tuple[int, ...], tally: Tally) -> None:
        """Of arrays of CuPy or PyTorch, on their current stream."""
        library = sys.modules[type(x).__module__.partition(".")[0]]
        if prod(x.shape):
            adds = _UFUNCS[self._op] is np.add
            part = x
            if axes:
                typed = {"dtype": into.dtype} if adds else {}
                part = getattr(library, _METHODS[self._op])(x, axes, **typed)
            part = part.astype(into.dtype) if hasattr(part, "astype") else part.to(into.dtype)
            getattr(library, _UFUNCS[self._op].__name__)(into, part, out=into)
        tally.take()


class Own(Reduction):
    """A user's: a kernel that adds a field to a part, and a function that joins two parts."""

    def __init__(
        self,
        name: str,
        field: str,
        op: tuple[Callable[..., Any], Callable[..., Any]],
        initial: Any,
        cuda: CudaSource | Callable[..., Any] | None,
        arrays: str | None,
        cost: Cost | None,
    ) -> None:
        super().__init__(name, field)
        self._combine = op[1]
        if initial is None:
            raise InvalidArgument(
                f"reduce({field!r}): a pair of functions needs initial=, an array that is their "
                "neutral element"
            )
        self._initial = np.ascontiguousarray(initial)
        self.codelet = Codelet(
            op[0],
            ["read", "update"],
            name=name,
            host_only=False,
            cost=cost,
            cuda=cuda,
            arrays=arrays,
        )

    def shape_of(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Layout:
        del shape, dtype
        return layout_of_new(self._initial.shape, self._initial.dtype)

    def begin(self, address: int) -> None:
        self._at(address)[...] = self._initial

    def combine(self, into: int, part: int) -> None:
        views = [self._at(into), self._at(part)]
        memories = [view.base for view in views if view.size]
        self._combine(*views)
        views.clear()
        refuse_kept(f"reduction {self.name!r}: the function that joins", "a part", memories)


def reduction_of(
    field: str,
    op: Any,
    axis: Any,
    dtype: Any,
    initial: Any,
    cuda: Any,
    arrays: str | None,
    name: str | None,
    cost: Cost | None,
) -> Reduction:
    """A reduction from the arguments of `Pipeline.reduce`."""
    for what, value in (("field", field), ("name", name)):
        if not isinstance(value, str) and (what == "field" or value is not None):
            raise InvalidType(f"{what} is {value!r}; expected the name of a field")
    title = name or field
    if isinstance(op, str) and op in _UFUNCS:
        if initial is not None or cuda is not None:
            raise InvalidArgument(f"reduce({field!r}): initial= and cuda= are for two functions")
        return Named(title, field, op, axis, dtype, arrays or "cupy", cost)
    if isinstance(op, tuple) and len(op) == 2 and all(map(callable, op)):
        return Own(title, field, op, initial, cuda, arrays, cost)
    raise InvalidArgument(
        f"op is {op!r}; expected one of {', '.join(map(repr, _UFUNCS))}, or a pair of functions: "
        "(add a field to a part, join two parts)"
    )


def part_of(reduction: Reduction, chunk: Chunk) -> tuple[int, int, _core.DType]:
    """The size of a result by a chunk; raises if it isn't that of the chunks before."""
    shape, dtype = chunk.kind_of(reduction.field)
    layout = reduction.shape_of(shape, dtype)
    if reduction.layout is None:
        reduction.layout = layout
    known = reduction.layout
    if (known.shape, known.dtype) != (layout.shape, layout.dtype):
        raise InvalidArgument(
            f"chunk {chunk.label} gives a result {reduction.name!r} of shape {layout.shape} and "
            f"type {layout.dtype}, chunks before gave {known.shape} and {known.dtype}"
        )
    return layout.rows, layout.cols, layout.core_dtype


def _extreme(dtype: np.dtype[Any], is_least: bool) -> Any:
    """The least value of a type, or the greatest."""
    if dtype.kind in "fc":
        return -np.inf if is_least else np.inf
    if dtype.kind == "b":
        return not is_least
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if is_least else np.iinfo(dtype).max
    raise InvalidArgument(f"the maximum and minimum of {dtype} aren't known")
