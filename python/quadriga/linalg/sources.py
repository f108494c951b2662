# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/sources.py: matrices whose elements are computed where they are needed.
"""Sources: functions, covariances, and objects with ``shape``, ``dtype`` and ``read``."""

from __future__ import annotations

import itertools
import operator
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..blas import one_thread
from ..completion import hides
from ..errors import InvalidArgument, InvalidType
from ..layout import layout_of_new
from ..ready import ready
from ..results import own_arguments, refuse_kept

Array = npt.NDArray[Any]
_numbers = itertools.count(1)
_KINDS = {"rbf": 0, "matern12": 1, "matern32": 2, "matern52": 3}


@hides("core", "number")
class Source:
    """A matrix that need not be stored: tasks compute or read its tiles where they are needed.

    Parameters
    ----------
    shape : (int, int)
    dtype : dtype
    hermitian : bool
        Whether it equals its conjugate transpose, so that one triangle is read.

    Attributes
    ----------
    shape, dtype, hermitian
        As given.
    failure : BaseException or None
        The exception of the last failed `read`.
    """

    def __init__(self, shape: tuple[int, int], dtype: npt.DTypeLike, hermitian: bool) -> None:
        self.shape = _sizes(shape)
        if hermitian and self.shape[0] != self.shape[1]:
            raise InvalidArgument(f"a hermitian matrix is square, and the shape is {shape}")
        self.dtype = np.dtype(dtype)
        self.hermitian = hermitian
        self.failure: BaseException | None = None
        # Tells whose failure an error is; negative, for tasks have positive ones.
        self.number = -next(_numbers)

    @property
    def ndim(self) -> int:
        """2, as of a matrix."""
        return 2

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        """Write the elements of these rows and columns to `out`, which has their shape."""
        raise NotImplementedError

    def _read_into(self, out: Array, rows: slice, cols: slice) -> None:
        """Calls `read`; refuses a result, as `out` isn't filled by whoever returns a block."""
        self._check_returned(self.read(rows, cols, out), out)  # type: ignore[func-returns-value]

    def _check_returned(self, returned: Any, out: Array) -> None:
        if returned is None or (
            isinstance(returned, np.ndarray) and np.may_share_memory(returned, out)
        ):
            return
        raise InvalidType(
            f"read() of {self._kind()} returned a value of type {type(returned).__name__}, which "
            "isn't used: write the block into `out`, as out[...] = block, and return nothing"
        )

    def astype(self, dtype: npt.DTypeLike) -> Source:
        """The same matrix with elements of another type."""
        return self if np.dtype(dtype) == self.dtype else _Converted(self, np.dtype(dtype))

    def core(self) -> _core.Matrix:
        """As the extension module takes it."""
        types = {
            "f": _core.DType.float32,
            "d": _core.DType.float64,
            "F": _core.DType.complex64,
            "D": _core.DType.complex128,
        }
        rows, cols = self.shape
        return _core.Matrix.source(
            rows, cols, types[self.dtype.char], self.hermitian, self._fill, self.number
        )

    def _fill(self, row: int, col: int, address: int, rows: int, cols: int, ld: int) -> None:
        """Called by the engine, on a host thread."""
        item = self.dtype.itemsize
        span = ((cols - 1) * ld + rows) * item
        memories = [_core.memory(address, span, True)]
        out: Array = np.ndarray((rows, cols), self.dtype, memories[0], 0, (item, ld * item))
        failure: BaseException | None = None
        try:
            with one_thread:
                self._read_into(out, slice(row, row + rows), slice(col, col + cols))
        except BaseException as raised:
            failure = raised
            # Frames and arguments must not keep views of memory that the engine takes back.
            traceback.clear_frames(raised.__traceback__)
            own_arguments(raised, [(layout_of_new((span,), np.uint8), address, span)], memories)
        del out
        try:
            refuse_kept(f"read() of {self._kind()}", "its `out`", memories)
        except InvalidType as kept:
            kept.__cause__ = failure
            failure = kept
        if failure is None:
            return
        self.failure = failure
        try:
            raise failure
        finally:
            del failure

    def _kind(self) -> str:
        """What errors call it."""
        return type(self).__name__

    @property
    def T(self) -> Source:  # noqa: N802
        """The transpose, which is a source, too."""
        return self if self.hermitian and self.dtype.kind != "c" else _Transposed(self)

    def __getitem__(self, key: Any) -> Any:
        """Elements as an array, by numbers and slices as in NumPy; others raise InvalidArgument."""
        ranges, is_number = _ranges(key, self.shape)
        low = [min(each, default=0) for each in ranges]
        high = [max(each, default=-1) + 1 for each in ranges]
        out = np.empty([b - a for a, b in zip(low, high, strict=True)], self.dtype, order="F")
        if out.size:
            self._read_into(out, slice(low[0], high[0]), slice(low[1], high[1]))
        steps = tuple(0 if one else slice(None, None, each.step)
                      for each, one in zip(ranges, is_number, strict=True))  # fmt: skip
        return out[steps]

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        """All elements, in a new array; raises ValueError if `copy` is False."""
        if copy is False:
            raise ValueError(f"{self!r} has no array, so that one has to be made")
        return np.asarray(self[:, :], dtype)

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"<{type(self).__name__} {rows} x {cols}, {self.dtype}>"


def _ranges(key: Any, shape: tuple[int, int]) -> tuple[list[range], list[bool]]:
    """The rows and the columns of a key, and which of them is given by a number."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(part is Ellipsis for part in parts):
        at = [part is Ellipsis for part in parts].index(True)
        parts[at : at + 1] = [slice(None)] * (3 - len(parts))
    parts += [slice(None)] * (2 - len(parts))
    ranges = []
    for part, size in zip(parts, shape, strict=False):
        if isinstance(part, slice):
            ranges.append(range(size)[part])
        elif hasattr(part, "__index__") and not isinstance(part, (bool, np.bool_, np.ndarray)):
            index = operator.index(part)
            if not -size <= index < size:
                axis = len(ranges)
                raise IndexError(f"index {index} is out of bounds for axis {axis} of size {size}")
            index %= size
            ranges.append(range(index, index + 1))
        else:
            break
    if len(ranges) != len(parts):
        raise InvalidArgument(
            f"a source is read by up to two numbers or slices, as in a[:10, 5:], not by {key!r}"
        )
    return ranges, [not isinstance(part, slice) for part in parts]


def _sizes(shape: Any) -> tuple[int, int]:
    try:
        rows, cols = (operator.index(size) for size in shape)
    except (TypeError, ValueError):
        rows = cols = -1
    if min(rows, cols) < 0:
        raise InvalidArgument(f"shape {shape}: expected two sizes of at least 0")
    return rows, cols


class _Converted(Source):
    """A source in another type than its own."""

    def __init__(self, inner: Source, dtype: np.dtype[Any]) -> None:
        super().__init__(inner.shape, dtype, inner.hermitian)
        self._inner = inner

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        out[...] = self._inner[rows, cols]

    def _kind(self) -> str:
        return self._inner._kind()


class _Transposed(Source):
    """The transpose of a source."""

    def __init__(self, inner: Source) -> None:
        super().__init__(inner.shape[::-1], inner.dtype, inner.hermitian)
        self._inner = inner

    @property
    def T(self) -> Source:  # noqa: N802
        return self._inner

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        self._inner._read_into(out.T, cols, rows)

    def _kind(self) -> str:
        return self._inner._kind()


class FunctionSource(Source):
    """A matrix computed by a function of its indices; made by `from_function`."""

    def __init__(
        self,
        shape: tuple[int, int],
        function: Callable[[Array, Array], npt.ArrayLike],
        hermitian: bool,
        dtype: npt.DTypeLike,
    ) -> None:
        super().__init__(shape, dtype, hermitian)
        self.function = function

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        i = np.arange(rows.start, rows.stop)[:, None]
        j = np.arange(cols.start, cols.stop)[None, :]
        values = np.asarray(self.function(i, j))
        # NumPy would drop imaginary parts with a warning, and take a forgotten `return` for NaNs.
        if not np.can_cast(values.dtype, self.dtype, "same_kind"):
            raise InvalidType(
                f"the function's values are {values.dtype}, and the matrix is {self.dtype}: "
                "expected a type that it can hold"
            )
        if not _broadcasts(values.shape, out.shape):
            raise InvalidArgument(
                f"the function's values have shape {values.shape} for rows {rows.start} to "
                f"{rows.stop} and columns {cols.start} to {cols.stop}: expected {out.shape}, or "
                "what NumPy broadcasts to it"
            )
        out[...] = values


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    ends = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(size in (1, most) for size, most in ends)


def from_function(
    shape: int | tuple[int, int],
    function: Callable[[Array, Array], npt.ArrayLike],
    hermitian: bool = False,
    dtype: npt.DTypeLike = float,
) -> FunctionSource:
    """A matrix that is computed tile by tile, where it is needed.

    Parameters
    ----------
    shape : int or (int, int)
        An int stands for a square matrix.
    function : callable
        ``function(i, j)`` gets row indices of shape (m, 1) and column indices of shape (1, n), and
        returns values that NumPy broadcasts to (m, n).
    hermitian : bool
        Whether the matrix equals its conjugate transpose; then one triangle is computed.
    dtype : dtype
        Type of the elements.

    Returns
    -------
    FunctionSource

    Raises
    ------
    InvalidArgument
        If shape or function aren't accepted. If the function returns another shape, or a type that
        `dtype` can't hold, the call that reads the values raises it.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import linalg
    >>> a = linalg.from_function(3, lambda i, j: 1.0 / (i + j + 1) + (i == j), hermitian=True)
    >>> x = linalg.solve(a, np.ones(3), assume_a="pos")
    >>> bool(np.allclose(a[:, :] @ x, 1))
    True
    """
    if not callable(function):
        raise InvalidType(f"function is {function!r}; expected a callable of two index blocks")
    if isinstance(shape, (int, np.integer)):
        shape = (int(shape), int(shape))
    return FunctionSource(shape, function, hermitian, dtype)


class Covariance(Source):
    """Covariances of points, compiled; made by `rbf` and `matern12` to `matern52`."""

    def __init__(
        self,
        kind: str,
        points: npt.ArrayLike,
        others: npt.ArrayLike | None,
        length_scale: float | Sequence[float],
        variance: float,
        nugget: float,
        dtype: npt.DTypeLike,
    ) -> None:
        self.kind = kind
        self.points = _points(points)
        self.others = _points(others) if others is not None else None
        if np.dtype(dtype).char not in "fd":
            raise InvalidType(f"covariances are float32 or float64, not {np.dtype(dtype)}")
        count = len(self.points)
        size = (count, count if self.others is None else len(self.others))
        super().__init__(size, dtype, self.others is None)
        if self.others is not None and self.others.shape[1] != self.points.shape[1]:
            raise InvalidArgument(
                f"points of {self.points.shape[1]} and {self.others.shape[1]} coordinates: "
                "expected as many in both sets"
            )
        scales = np.atleast_1d(np.asarray(length_scale, float)).tolist()
        self._parameters = (_KINDS[kind], float(variance), float(nugget), scales)
        self._core = self._make(self.dtype)

    def _make(self, dtype: np.dtype[Any]) -> _core.Matrix:
        core = _core.DType.float32 if dtype.char == "f" else _core.DType.float64
        address = self.others.ctypes.data if self.others is not None else 0
        count = len(self.others) if self.others is not None else 0
        return _core.Matrix.covariance(
            *self._parameters,
            core,
            self.points.shape[1],
            self.points.ctypes.data,
            len(self.points),
            address,
            count,
        )

    def core(self) -> _core.Matrix:
        return self._core

    def __reduce__(self) -> tuple[Any, ...]:
        _, variance, nugget, scales = self._parameters
        parts = self.kind, self.points, self.others, scales, variance, nugget, self.dtype
        return Covariance, parts

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        block = np.empty(out.shape, self.dtype, order="F")
        height, width = out.shape
        self._core.read(rows.start, cols.start, block.ctypes.data, height, width, max(1, height))
        out[...] = block


def _points(points: npt.ArrayLike) -> Array:
    array = np.ascontiguousarray(ready(points), dtype=float)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidArgument(
            f"points of shape {array.shape}: expected (points, coordinates), or (points,)"
        )
    return array


def covariance(
    kind: str,
    points: npt.ArrayLike,
    others: npt.ArrayLike | None = None,
    *,
    length_scale: float | Sequence[float] = 1.0,
    variance: float = 1.0,
    nugget: float = 0.0,
    dtype: npt.DTypeLike = float,
) -> Covariance:
    """Covariances of a kind given by name.

    Parameters
    ----------
    kind : {"rbf", "matern12", "matern32", "matern52"}
    points, others, length_scale, variance, nugget, dtype
        As in `rbf`, as are result and errors.
    """
    if kind not in _KINDS:
        raise InvalidArgument(f"covariance {kind!r}: expected one of {', '.join(_KINDS)}")
    return Covariance(kind, points, others, length_scale, variance, nugget, dtype)


def rbf(
    points: npt.ArrayLike,
    others: npt.ArrayLike | None = None,
    *,
    length_scale: float | Sequence[float] = 1.0,
    variance: float = 1.0,
    nugget: float = 0.0,
    dtype: npt.DTypeLike = float,
) -> Covariance:
    """Covariances ``variance * exp(-r**2 / 2)`` of points a scaled distance r apart.

    Parameters
    ----------
    points : array_like
        Coordinates of the rows' points, of shape (points, dimensions), or (points,) for one.
    others : array_like, optional
        Coordinates of the columns' points. Default: `points`; the matrix is hermitian then.
    length_scale : float or sequence of float
        The divisor of coordinates: one positive number, or one for each dimension.
    variance : float
        The covariance of a point with itself, positive.
    nugget : float
        Added on the diagonal if `others` isn't given, at least 0.
    dtype : dtype
        float64 or float32; values are computed in float64.

    Returns
    -------
    Covariance
        A source of shape (points, others).

    Raises
    ------
    InvalidArgument
        If numbers aren't finite or positive, or shapes disagree.

    Examples
    --------
    >>> from quadriga import linalg
    >>> linalg.rbf([[0.0], [1.0]], nugget=0.5)[:, :].round(3)
    array([[1.5  , 0.607],
           [0.607, 1.5  ]])
    """
    return Covariance("rbf", points, others, length_scale, variance, nugget, dtype)


def matern12(
    points: npt.ArrayLike,
    others: npt.ArrayLike | None = None,
    *,
    length_scale: float | Sequence[float] = 1.0,
    variance: float = 1.0,
    nugget: float = 0.0,
    dtype: npt.DTypeLike = float,
) -> Covariance:
    """Covariances ``variance * exp(-r)``; parameters, result and errors as in `rbf`."""
    return Covariance("matern12", points, others, length_scale, variance, nugget, dtype)


def matern32(
    points: npt.ArrayLike,
    others: npt.ArrayLike | None = None,
    *,
    length_scale: float | Sequence[float] = 1.0,
    variance: float = 1.0,
    nugget: float = 0.0,
    dtype: npt.DTypeLike = float,
) -> Covariance:
    """Covariances ``variance * (1 + s) * exp(-s)``, s = sqrt(3) r; else like `rbf`."""
    return Covariance("matern32", points, others, length_scale, variance, nugget, dtype)


def matern52(
    points: npt.ArrayLike,
    others: npt.ArrayLike | None = None,
    *,
    length_scale: float | Sequence[float] = 1.0,
    variance: float = 1.0,
    nugget: float = 0.0,
    dtype: npt.DTypeLike = float,
) -> Covariance:
    """Covariances ``variance * (1 + s + s**2/3) * exp(-s)``, s = sqrt(5) r; else like `rbf`."""
    return Covariance("matern52", points, others, length_scale, variance, nugget, dtype)
