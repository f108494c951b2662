# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cuda_source.py: CUDA C++ as a codelet's variant: its types, its grid, its launch.
"""Users' CUDA kernels, compiled on first use."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, nvrtc
from .arguments import whole
from .completion import hides
from .cuda_grid import Extent, Three, block_of, default_grid, grid_of
from .errors import InvalidArgument, InvalidType
from .layout import Layout

_MOST_PLANS = 4096  # that a source keeps: of loops, which launch on the same data again
_CPP_TYPES = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.int8): "signed char",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.int16): "short",
    np.dtype(np.uint16): "unsigned short",
    np.dtype(np.int32): "int",
    np.dtype(np.uint32): "unsigned int",
    np.dtype(np.int64): "long long",
    np.dtype(np.uint64): "unsigned long long",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex64): "float2",
    np.dtype(np.complex128): "double2",
}

_OF_THIS_PROCESS = ("_scalars", "_lock", "_kernels", "_plans")


class _Scalar(NamedTuple):
    """A parameter of a kernel, and the quick way to pack Python's own number of its type."""

    name: str
    kind: np.dtype[Any]
    quick: type | None
    pack: Callable[[Any], bytes]

    @classmethod
    def of(cls, name: str, kind: np.dtype[Any]) -> _Scalar:
        quick = {"f": float, "i": int, "u": int, "b": bool}.get(kind.kind)
        return cls(name, kind, quick, struct.Struct(f"@{kind.char if quick else 'x'}").pack)


class Matrix(NamedTuple):
    """An operand as kernels see it."""

    rows: int
    cols: int
    row_step: int
    col_step: int
    ld_axis: int
    unit: int


@hides("plan")
class CudaSource:
    """A codelet's CUDA variant in CUDA C++.

    A kernel takes one ``quadriga::Tile<T>`` for each operand, ``Tile<const T>`` for those that are
    only read, and then the values of `parameters`. It may be a template. A tile has ``data``,
    ``rows``, ``cols``, ``row_step`` and ``col_step`` (in elements): element (i, j) is
    ``tile(i, j)``, which is ``data[i * row_step + j * col_step]``, for arrays in C and in Fortran
    order, and ``tile[k]`` is the k-th of ``tile.size()`` elements row by row. An array of one
    dimension is a column; one of none, or of more than two, is a column of all its elements in
    memory order. ``quadriga::thread_x()`` and ``thread_y()`` number the threads of the whole grid.

    Parameters
    ----------
    text : str
        The source. `T` is float, double, float2 or double2 (complex), bool, or a C++ integer; int64
        is ``long long``.
    kernel : str, optional
        Name of the ``__global__`` function. Default: the codelet's name.
    parameters : mapping of str to dtype
        Names and types of the task's parameters that the kernel takes, in its order.
    grid : int, sequence of int or callable, optional
        Numbers of blocks along x, y and z; a callable gets the shapes of all operands. Default: one
        thread per element of the first written operand. In one-dimensional blocks x counts
        elements; otherwise x counts columns and y rows. CUDA allows at most 65,535 blocks along y
        and z: a task that needs more is rejected on submission.
    block : int, sequence of int or callable
        Numbers of threads in a block along x, y and z; a callable as for `grid`.
    shared_bytes : int
        Dynamic shared memory of a block, in bytes.
    options : sequence of str
        Further options for NVRTC, such as ``"--use_fast_math"``.

    Raises
    ------
    InvalidArgument
        If an argument isn't accepted; `InvalidType` if its type is wrong.

    Notes
    -----
    NVRTC compiles the source for all GPU architectures of the process when a task is first
    submitted to an engine with CUDA devices, through the package cuda-bindings
    (``pip install quadriga[cuda]``). The result is cached in the folder named by the setting
    `cache`, unless the source includes files. ``submit`` raises `InvalidArgument` with the
    compiler's messages if the source doesn't compile or has no kernel for the operands' types, and
    `Unavailable` without NVRTC. A launch that CUDA rejects fails the task.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> source = '''
    ... template <class T>
    ... __global__ void axpy(quadriga::Tile<const T> x, quadriga::Tile<T> y, T alpha) {
    ...   const long long k = quadriga::thread_x();
    ...   if (k < y.size()) y[k] += alpha * x[k];
    ... }
    ... '''
    >>> @quadriga.codelet(
    ...     access=["read", "update"],
    ...     cuda=quadriga.CudaSource(source, parameters={"alpha": float}),
    ... )
    ... def axpy(x, y, alpha):  # without a GPU
    ...     y += alpha * x
    >>> x, y = np.arange(3.0), np.ones(3)
    >>> with quadriga.Engine() as engine:
    ...     _ = engine.submit(axpy, engine.data(x).read(), engine.data(y).update(), alpha=2.0)
    >>> y
    array([1., 3., 5.])
    """

    def __init__(
        self,
        text: str,
        kernel: str | None = None,
        *,
        parameters: Mapping[str, npt.DTypeLike] | None = None,
        grid: Extent | Callable[..., Extent] | None = None,
        block: Extent | Callable[..., Extent] = 256,
        shared_bytes: int = 0,
        options: Sequence[str] = (),
    ) -> None:
        if not isinstance(text, str):
            raise InvalidType(f"text is {type(text).__name__}; expected CUDA C++ as a str")
        if isinstance(options, str):
            raise InvalidType(f"options {options!r}: expected a list of them")
        self.text = text
        self.kernel = kernel
        self.parameters = {
            name: _known(np.dtype(kind), f"parameter {name!r}")
            for name, kind in (parameters or {}).items()
        }
        self.grid = grid
        self.block = block
        self.shared_bytes = whole("shared_bytes", shared_bytes, 0, 2**31 - 1)
        self.options = tuple(options)
        self._scalars = [_Scalar.of(name, kind) for name, kind in self.parameters.items()]
        self._lock = threading.Lock()
        self._kernels: dict[nvrtc.Request, _core.DeviceKernel] = {}  # guarded by _lock
        # By what they were made from, with the layouts, of which the keys hold the addresses.
        self._plans: dict[tuple[Any, ...], tuple[Sequence[Layout], _core.LaunchPlan]] = {}

    def plan(
        self,
        title: str,
        layouts: Sequence[Layout],
        access: Sequence[str],
        values: Mapping[str, Any],
    ) -> _core.LaunchPlan:
        """How a task of the codelet `title` is launched; compiles what is new."""
        packed = [_packed(title, each, values) for each in self._scalars] if self._scalars else ()
        key = (title, tuple(access), *map(id, layouts), *packed)
        if (kept := self._plans.get(key)) is not None:
            return kept[1]
        refuse_backwards(title, layouts)
        types = [_known(layout.dtype, f"operand {i}") for i, layout in enumerate(layouts)]
        views = [
            f"quadriga::Tile<{'const ' if mode == 'read' else ''}{_CPP_TYPES[kind]}>"
            for kind, mode in zip(types, access, strict=True)
        ]
        scalars = [_CPP_TYPES[kind] for kind in self.parameters.values()]
        request = nvrtc.Request(
            title, self.text, self.kernel or title, (*views, *scalars), self.options
        )
        matrices = [matrix_of(layout) for layout in layouts]
        grid, block = self._spread(title, layouts, matrices, access)
        made = _core.LaunchPlan(
            self._compiled(request), grid, block, self.shared_bytes, matrices, list(packed)
        )
        if not callable(self.grid) and not callable(self.block):  # these may know more than shapes
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = (layouts, made)
        return made

    def _compiled(self, request: nvrtc.Request) -> _core.DeviceKernel:
        with self._lock:
            if request not in self._kernels:
                images: dict[int, tuple[bytes, str]] = {}
                for architecture in _core.cuda_architectures():
                    image = nvrtc.image_of(request, architecture)
                    images[architecture] = (image.code, image.name)
                self._kernels[request] = _core.DeviceKernel(f"codelet '{request.title}'", images)
            return self._kernels[request]

    def _spread(
        self,
        title: str,
        layouts: Sequence[Layout],
        matrices: Sequence[Matrix],
        access: Sequence[str],
    ) -> tuple[Three, Three]:
        """Grid and block of a task."""
        shapes = [layout.shape for layout in layouts]
        block = block_of(title, self.block, shapes)
        if self.grid is not None:
            return grid_of(title, self.grid, shapes), block
        written = next((i for i, mode in enumerate(access) if mode != "read"), 0)
        rows, cols = matrices[written][:2] if matrices else (1, 1)
        return default_grid(title, rows, cols, block), block

    def __getstate__(self) -> dict[str, Any]:
        """Without what was compiled, which another process does by itself."""
        return {k: v for k, v in vars(self).items() if k not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        scalars = [_Scalar.of(name, kind) for name, kind in state["parameters"].items()]
        vars(self).update(state, _scalars=scalars, _lock=threading.Lock(), _kernels={}, _plans={})

    def __repr__(self) -> str:
        return f"<CudaSource of {self.kernel or 'a kernel'}>"


def matrix_of(layout: Layout) -> Matrix:
    """An array as a matrix of its elements, wherever its tile is; steps in elements."""
    item = layout.dtype.itemsize
    unit = item if layout.core_dtype == _core.DType.bytes else 1
    if len(layout.shape) == 2:
        rows, cols = layout.shape
        row_step, col_step = (stride // item for stride in layout.strides)
        axis = -1 if layout.ld_axis is None else layout.ld_axis
        return Matrix(rows, cols, row_step, col_step, axis, unit)
    axis = 0 if layout.ld_axis == 0 else -1
    return Matrix(prod(layout.shape), 1, 1, 0, axis, unit)


def _known(kind: np.dtype[Any], what: str) -> np.dtype[Any]:
    if kind not in _CPP_TYPES:
        raise InvalidType(
            f"{what} is of type {kind}, which CUDA sources have no name for; expected one of "
            + ", ".join(str(each) for each in _CPP_TYPES)
        )
    return kind


def refuse_backwards(title: str, layouts: Sequence[Layout]) -> None:
    """Raise `InvalidArgument` for an operand that kernels can't walk through."""
    for number, layout in enumerate(layouts):
        if layout.turned:
            raise InvalidArgument(
                f"operand {number} of codelet '{title}' runs backwards, as x[::-1]; "
                "expected one that doesn't, as a GPU may run it; or make it host_only=True"
            )


def _packed(title: str, scalar: _Scalar, values: Mapping[str, Any]) -> bytes:
    """A parameter's bytes, if the value is one of its type."""
    name, _, quick, pack = scalar
    if name not in values:
        raise InvalidArgument(f"codelet '{title}': its CUDA source takes {name}=, which is missing")
    value = values[name]
    if type(value) is not quick:
        return _converted(title, scalar, value)
    try:
        return pack(value)
    except (struct.error, OverflowError):
        return _converted(title, scalar, value)


def _converted(title: str, scalar: _Scalar, given: Any) -> bytes:
    name, kind = scalar.name, scalar.kind
    value = np.asarray(given)
    whole = kind.kind in "iu" and value.dtype.kind in "iu"
    if value.shape == () and (whole or np.can_cast(value.dtype, kind, "same_kind")):
        packed = value.astype(kind)
        if not whole or packed == value:  # else it doesn't fit
            return packed.tobytes()
    raise InvalidArgument(f"codelet '{title}': {name}={given!r}; its CUDA source takes one {kind}")
