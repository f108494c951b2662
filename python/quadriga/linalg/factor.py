# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/factor.py: Cholesky factors, which stay on their devices until unpacked.
"""`cho_factor`, `cho_solve` and `Factor`."""

from __future__ import annotations

import html
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..arguments import either, file_of
from ..beside import target_of
from ..engine import Engine
from ..errors import InvalidArgument, InvalidType
from ..foreign import DeviceArray, Kind, kind_of, share_memory
from ..machine import Machine
from ..typing import Array, ArrayLike, CudaArrayT, HostArrayLike, Progress
from .arrays import (
    Dense,
    DType,
    Input,
    as_input,
    by_columns,
    check_finite,
    check_symmetric,
    in_type,
    lapack_type,
    to_overwrite,
)
from .run import Call, start
from .sources import Source

_TYPES: dict[_core.DType, DType] = {
    _core.DType.float32: np.dtype(np.float32),
    _core.DType.float64: np.dtype(np.float64),
    _core.DType.complex64: np.dtype(np.complex64),
    _core.DType.complex128: np.dtype(np.complex128),
}


@dataclass(frozen=True)
class Held:
    """Where a factor's tiles are, in bytes.

    Attributes
    ----------
    bytes : int
        Size of the factor: the tiles of its triangle.
    devices : dict of str to int
        Valid replicas on each device.
    buffers : int
        In host buffers or the spill file.
    """

    bytes: int
    devices: dict[str, int]
    buffers: int


class Factor:
    """A Cholesky factor; made by `cho_factor`.

    Its tiles stay on the devices, so a solve copies only those that are missing there.
    It unpacks to SciPy's ``(c, lower)``, which `scipy.linalg.cho_solve` takes. It pickles as its
    file, and unpickles on the default engine. Threads may share it.

    Attributes
    ----------
    engine : Engine
        The engine that holds it. A factor stays usable after its engine is closed.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import linalg
    >>> factor = linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 3.0]]), lower=True)
    >>> factor.solve(np.array([8.0, 8.0]))
    array([1., 2.])
    >>> round(factor.logdet(), 6) == round(float(np.log(8.0)), 6)
    True
    >>> c, lower = factor
    """

    def __init__(
        self,
        engine: Engine,
        core: _core.Factor,
        memory: Dense | None = None,
        kind: Kind | None = None,
    ) -> None:
        self.engine = engine
        self._core = core
        self._memory = memory
        self._kind = kind or Kind()
        self._lock = threading.Lock()

    def __del__(self) -> None:
        if hasattr(self, "_core"):
            self.engine._keep_collected(self._core)

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""
        return (self._core.order(), self._core.order())

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return _TYPES[self._core.dtype()]

    @property
    def lower(self) -> bool:
        """Whether it is the lower triangle."""
        return self._core.lower()

    @property
    def tile(self) -> int:
        """Rows and columns of a tile."""
        return self._core.tile()

    @overload
    def solve(
        self, b: HostArrayLike, overwrite_b: bool = ..., check_finite: bool = ..., *,
        progress: Progress = ...,
    ) -> npt.NDArray[Any]: ...  # fmt: skip
    @overload
    def solve(
        self, b: CudaArrayT, overwrite_b: bool = ..., check_finite: bool = ..., *,
        progress: Progress = ...,
    ) -> CudaArrayT: ...  # fmt: skip
    @overload
    def solve(
        self, b: ArrayLike, overwrite_b: bool = ..., check_finite: bool = ..., *,
        progress: Progress = ...,
    ) -> Array: ...  # fmt: skip
    @mapped.checks()
    def solve(
        self,
        b: ArrayLike,
        overwrite_b: bool = False,
        check_finite: bool = True,
        *,
        progress: Progress = None,
    ) -> Array:
        """Solve ``a @ x = b`` for x; parameters, result and errors as in `cho_solve`."""
        return _solve(self, as_input(b, "b"), b, overwrite_b, check_finite, progress)

    def logdet(self) -> float:
        """The logarithm of the determinant of the matrix that was factorized."""
        with self._lock:
            return self._core.logdet(self._options())

    def inverse_diagonal(self, *, progress: Progress = None) -> npt.NDArray[Any]:
        """The diagonal of the inverse of the matrix: a NumPy array of n float64."""
        out = np.empty(self.shape[0])
        with self._lock, start("inverse_diagonal", self.engine, None, None, progress) as call:
            self._core.inverse_diagonal(out.ctypes.data, call.options(out))
        return out

    def unpack(self, clean: bool = False) -> Array:
        """The factor as an array of shape (n, n), of the library and device of the matrix.

        Parameters
        ----------
        clean : bool
            Set the other triangle to zero. It is zero in any case, except for a matrix that was
            overwritten, whose array is returned with its other triangle unchanged.
        """
        with self._lock:
            if self._memory is not None and not clean:
                self._core.bring_home(self._options())
                return self._kind.give(self._memory)
            out = self._kind.make(self.shape, self.dtype, zeros=True)
            call = Call(self.engine, 0, None, None)
            self._core.unpack(call.matrix(out), bool(clean), call.options(out))
            return self._kind.give(out)

    def save(self, path: str | bytes | os.PathLike[str]) -> None:
        """Write the factor to a file, which `load` reads; the file is either complete or absent.

        Raises
        ------
        IoError
            If the file can't be written, for example on a full disk; the message names it.
        """
        with self._lock:
            self._core.save(str(target_of(file_of("path", path))), self._options())

    @classmethod
    def load(
        cls,
        path: str | bytes | os.PathLike[str],
        *,
        engine: Engine | None = None,
        devices: str | Machine | None = None,
    ) -> Factor:
        """Read a factor that `save` wrote.

        Raises
        ------
        IoError
            If the file is missing, truncated, damaged, no factor or of another version.
        """
        file = file_of("path", path)
        with start("load", engine, devices, None, None) as call:
            return cls(call.engine, _core.load_factor(call.core, file, call.options()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its file; it is loaded on the default engine of its process."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "factor"
            self.save(path)
            return _from_bytes, (path.read_bytes(),)

    def held(self) -> Held:
        """Where the factor's tiles are now."""
        with self._lock:
            total, devices, buffers = self._core.held()
        pairs = zip(self.engine.machine.devices, devices, strict=False)
        return Held(total, {d.name: size for d, size in pairs if not d.is_bare_host}, buffers)

    def _options(self, *kept: Any) -> _core.CallOptions:
        return _core.CallOptions(0, kept, None)

    def __iter__(self) -> Iterator[Any]:
        yield self.unpack()
        yield self.lower

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return (self.unpack if range(2)[index] == 0 else lambda: self.lower)()

    def __repr__(self) -> str:
        triangle = "lower" if self.lower else "upper"
        return f"<Factor of order {self.shape[0]}, {self.dtype}, {triangle}, tile {self.tile}>"

    def _repr_html_(self) -> str:
        held = self.held()
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{_core.format_bytes(size)}</td></tr>"
            for name, size in [*held.devices.items(), ("host buffers", held.buffers)]
        )
        return (
            f"<p>{html.escape(repr(self)[1:-1])}, {_core.format_bytes(held.bytes)}</p>"
            f"<table><tbody>{rows}</tbody></table>"
        )


def _from_bytes(content: bytes) -> Factor:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "factor"
        path.write_bytes(content)
        return Factor.load(path)


def square(value: Any, name: str = "a") -> Input:
    """A square matrix; SciPy's words if it isn't."""
    found = as_input(value, name)
    if isinstance(found, np.ndarray):
        found = np.atleast_2d(found)
    if found.ndim != 2:
        raise InvalidArgument(f"Input array needs to be 2D but received a {found.ndim}d-array.")
    if found.shape[0] != found.shape[1]:
        raise InvalidArgument(
            f"Input array is expected to be square but has the shape: {found.shape}."
        )
    return found


@mapped.checks()
def cho_factor(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    check_symmetric: bool | float = False,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Factor:
    """The Cholesky factor of a matrix, for `cho_solve`, as `scipy.linalg.cho_factor`.

    Parameters
    ----------
    a : array_like or source
        Hermitian and positive definite, of shape (n, n); only the triangle given by `lower` is
        read.
    lower : bool
        Compute the lower factor, ``a = l @ l.conj().T``, instead of the upper one.
    overwrite_a : bool
        Factorize in the memory of `a`, which then holds the factor, and mustn't change while that
        is used. Without contiguous rows or columns the factor gets memory of its own.
    check_finite : bool
        Reject infinities and NaNs in arrays.
    check_symmetric : bool or float
        As in `cholesky`.
    tile, reproducible, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    Factor
        Unpacks as ``(c, lower)``.

    Raises
    ------
    NotPositiveDefinite
        A `numpy.linalg.LinAlgError` that names the leading minor.
    TooLarge
        If neither the devices nor the host's buffers can hold the factor.
    """
    matrix, lower = square(a), either("lower", lower)
    _check(matrix, check_finite, check_symmetric)
    kind = kind_of(a)
    with start(
        "cho_factor", engine, devices, tile, progress, matrix, reproducible=reproducible
    ) as call:
        return factorize(call, matrix, lower, overwrite_a, kind=kind)


def _check(matrix: Input, finite: bool, symmetric: bool | float) -> None:
    check_finite(matrix, finite)
    check_symmetric(matrix, symmetric)


def factorize(
    call: Call,
    given: Input,
    lower: bool,
    overwrite: bool,
    dtype: DType | None = None,
    part: tuple[float, float] = (0.0, 1.0),
    kind: Kind | None = None,
) -> Factor:
    """The factor of a checked matrix."""
    matrix = in_type(given, dtype or lapack_type(given))
    if overwrite:
        matrix = by_columns(matrix)
    memory: Dense | None = None
    if isinstance(matrix, DeviceArray):
        memory = matrix if matrix is not given or (overwrite and matrix.writeable) else None
    elif isinstance(matrix, np.ndarray) and matrix.flags.writeable:
        memory = matrix if overwrite or not np.may_share_memory(matrix, given) else None
    described = call.matrix(matrix)
    if described.is_strided():  # factorized in a copy, even with overwrite_a
        memory = None
    is_own = not share_memory(memory, given)  # nobody else sees it
    options = call.options(matrix, part=part)
    core = _core.cho_factor(call.core, described, lower, memory is not None, is_own, options)
    return Factor(call.engine, core, memory, kind)


@overload
def cho_solve(
    c_and_lower: Factor | tuple[ArrayLike, bool], b: HostArrayLike, overwrite_b: bool = ...,
    check_finite: bool = ..., *, tile: int | None = ..., reproducible: bool | None = ...,
    engine: Engine | None = ..., devices: str | Machine | None = ..., progress: Progress = ...,
) -> npt.NDArray[Any]: ...  # fmt: skip
@overload
def cho_solve(
    c_and_lower: Factor | tuple[ArrayLike, bool], b: CudaArrayT, overwrite_b: bool = ...,
    check_finite: bool = ..., *, tile: int | None = ..., reproducible: bool | None = ...,
    engine: Engine | None = ..., devices: str | Machine | None = ..., progress: Progress = ...,
) -> CudaArrayT: ...  # fmt: skip
@overload
def cho_solve(
    c_and_lower: Factor | tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = ...,
    check_finite: bool = ..., *, tile: int | None = ..., reproducible: bool | None = ...,
    engine: Engine | None = ..., devices: str | Machine | None = ..., progress: Progress = ...,
) -> Array: ...  # fmt: skip
@mapped.checks()
def cho_solve(
    c_and_lower: Factor | tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Array:
    """Solve ``a @ x = b`` with the factor of `a`, as `scipy.linalg.cho_solve`.

    Parameters
    ----------
    c_and_lower : Factor or (array_like, bool)
        The result of this `cho_factor` or SciPy's; the array has shape (n, n).
    b : array_like
        One right-hand side, of shape (n,), or k of them, of shape (n, k).
    overwrite_b : bool
        Whether the solution may be written to `b`.
    check_finite : bool
        Reject infinities and NaNs in arrays.
    tile, reproducible, engine, devices, progress
        See `quadriga.linalg`; of a `Factor` only `progress` is used.

    Returns
    -------
    array
        Of the shape, library and device of `b`.

    Raises
    ------
    InvalidArgument
        If the factor isn't square or the shapes disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import linalg
    >>> linalg.cho_solve((np.array([[2.0, 0.0], [1.0, 1.0]]), True), [6.0, 4.0])
    array([1., 1.])
    """
    right = as_input(b, "b")
    if isinstance(c_and_lower, Factor):
        return _solve(c_and_lower, right, b, overwrite_b, check_finite, progress)
    try:
        c, lower = c_and_lower
    except (TypeError, ValueError):
        raise InvalidType(
            f"c_and_lower is {type(c_and_lower).__name__}; expected a Factor, or (c, lower)"
        ) from None
    lower = either("lower", lower)
    given = as_input(c, "c")
    if isinstance(given, Source):
        given = given[:, :]
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise InvalidArgument("The factored matrix c is not square.")
    _fits(given.shape, right)
    _check(given, check_finite, False)
    dtype = lapack_type(given, right)
    factor = by_columns(in_type(given, dtype))
    if right.shape[0] == 0 or 0 in right.shape:
        kind = kind_of(b) or Kind()
        return kind.give(kind.make(right.shape, dtype))
    with start("cho_solve", engine, devices, tile, progress, reproducible=reproducible) as call:
        core = _core.factor_from(call.core, call.matrix(factor), lower, call.options(factor))
        held = Factor(call.engine, core)
        overwrite_b = overwrite_b and not share_memory(right, factor)
        return _solve(held, right, b, overwrite_b, check_finite, progress)


def _fits(shape: tuple[int, ...], right: Input) -> None:
    if right.ndim not in (1, 2):
        raise InvalidArgument(f"b has {right.ndim} dimensions; expected 1 or 2")
    if shape[1] != right.shape[0]:
        raise InvalidArgument(f"incompatible dimensions ({shape} and {right.shape})")


def _solve(
    factor: Factor, right: Input, b: ArrayLike, overwrite: bool, finite: bool, progress: Progress
) -> Array:
    _fits(factor.shape, right)
    check_finite(right, finite)
    wanted, dtype = lapack_type(right), factor.dtype
    if np.result_type(wanted, dtype) != dtype:
        return _solve_wider(factor, b, np.result_type(wanted, dtype), progress)
    kind = kind_of(b) or Kind()
    overwrite = overwrite and not share_memory(right, factor._memory)
    x = to_overwrite(by_columns(right), dtype, overwrite)
    if x.size:
        with start("solve", factor.engine, None, None, progress) as call:
            solve_in_place(call, factor, x)
    return kind.give(x)


def _solve_wider(factor: Factor, right: ArrayLike, dtype: DType, progress: Progress) -> Array:
    """A right-hand side of a type that the factor's can't hold: solved with a converted factor."""
    unpacked = as_input(factor.unpack(), "c")
    c: Any = unpacked if isinstance(unpacked, DeviceArray) else np.asarray(unpacked, dtype=dtype)
    return cho_solve((c, factor.lower), right, False, False, engine=factor.engine,
                     progress=progress)  # fmt: skip


def solve_in_place(
    call: Call, factor: Factor, x: Dense, part: tuple[float, float] = (0.0, 1.0)
) -> None:
    """Overwrites x, of the factor's type, by the solution."""
    with factor._lock:
        factor._core.solve(call.matrix(x), call.options(x, part=part))
