# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/vectors.py: a distributed matrix, its vectors, and scalars that stay on the
# devices.
"""Operators on vectors and scalars become tasks; only reading waits."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..arguments import whole
from ..engine import Engine
from ..errors import InvalidArgument, InvalidType
from ..linalg.arrays import check_type
from ..machine import Machine
from ..registered import settle
from ..typing import ArrayLike, MatrixLike
from .distributed import Storage, core_options
from .matrices import common_type, on_host
from .options import FORMATS, number_of
from .preconditioners import preconditioner_of
from .row_blocks import RowBlocks, as_rows, readable
from .solver import engine_for

NDArray = npt.NDArray[Any]
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _LESS, _LESS_EQUAL, _SQRT, _ABS, _REAL = range(9)
_NUMBERS = (int, float, complex, np.number)
_ZERO = _core.SparseScalar(0)


class Scalar:
    """A number on a device, as `dot` returns it, which the host doesn't know until it is read.

    ``+ - * /``, ``< <= > >=``, `abs` and `sqrt()` of scalars and numbers are scalars. ``float(s)``,
    ``complex(s)``, ``bool(s)`` and ``==`` wait and read; ``if`` and ``while`` do so too. Scalars
    are in double precision, and real but for the dot product of complex vectors.

    Raises
    ------
    InvalidArgument
        If scalars of two matrices meet, or complex ones are compared or read by `float`.
    """

    __slots__ = ("_core", "_engine")
    __array_ufunc__ = None

    def __init__(self, value: complex) -> None:
        self._core = _core.SparseScalar(complex(value))
        #: Open for as long as the scalar is here; None: a constant.
        self._engine: Engine | None = None

    def __add__(self, other: Any) -> Scalar:
        return self._with(other, _ADD)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Scalar:
        return self._with(other, _SUBTRACT)

    def __rsub__(self, other: Any) -> Scalar:
        return self._after(other, _SUBTRACT)

    def __mul__(self, other: Any) -> Scalar:
        return self._with(other, _MULTIPLY)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Scalar:
        return self._with(other, _DIVIDE)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._after(other, _DIVIDE)

    def __neg__(self) -> Scalar:
        return self._with(-1, _MULTIPLY)

    def __lt__(self, other: Any) -> Scalar:
        return self._with(other, _LESS)

    def __le__(self, other: Any) -> Scalar:
        return self._with(other, _LESS_EQUAL)

    def __gt__(self, other: Any) -> Scalar:
        return self._after(other, _LESS)

    def __ge__(self, other: Any) -> Scalar:
        return self._after(other, _LESS_EQUAL)

    def __eq__(self, other: Any) -> bool:
        """Waits, and compares the values."""
        right = _as_scalar(other)
        if right is None:
            return cast(bool, NotImplemented)
        return complex(self) == complex(right)

    def __abs__(self) -> Scalar:
        return _scalar(self._core.compute(_ABS, _ZERO), self._engine)

    def sqrt(self) -> Scalar:
        """The square root of a real scalar; NaN of a negative one."""
        return _scalar(self._core.compute(_SQRT, _ZERO), self._engine)

    @property
    def real(self) -> Scalar:
        """The real part, a scalar on its device."""
        return _scalar(self._core.compute(_REAL, _ZERO), self._engine)

    def __complex__(self) -> complex:
        return complex(self._core.read())

    def __float__(self) -> float:
        if self._core.is_complex:
            raise InvalidArgument("a complex scalar; expected a real one, as s.real or abs(s)")
        return complex(self).real

    def __bool__(self) -> bool:
        return complex(self) != 0

    def __repr__(self) -> str:
        return "<Scalar on a device>"

    def _with(self, other: Any, operation: int) -> Scalar:
        right = _as_scalar(other)
        if right is None:
            return cast(Scalar, NotImplemented)
        core = self._core.compute(operation, right._core)
        return _scalar(core, self._engine or right._engine)

    def _after(self, other: Any, operation: int) -> Scalar:
        left = _as_scalar(other)
        if left is None:
            return cast(Scalar, NotImplemented)
        return left._with(self, operation)


class Vector:
    """A vector in parts on the devices, made by `Matrix.vector` or by operators.

    ``x + y``, ``x - y``, ``-x``, ``alpha * x`` and ``x / alpha`` are sums of scaled vectors, which
    are computed in one pass when they are needed, up to four together. ``x += alpha * y`` is one
    pass in place. ``x * y`` is by elements, as with a diagonal preconditioner. A factor is a
    `Scalar` or a number.

    Raises
    ------
    InvalidArgument
        If vectors or scalars of two matrices meet, or a complex scalar meets real vectors.
    """

    __slots__ = ("_core", "_matrix")
    __array_ufunc__ = None

    def __init__(self, core: _core.SparseVector, matrix: Matrix) -> None:
        self._core = core
        self._matrix = matrix  # and its engine, as long as the vector is here

    @property
    def shape(self) -> tuple[int]:
        """(n,)"""
        return self._matrix.shape[:1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of its matrix."""
        return self._matrix.dtype

    def _of(self, core: _core.SparseVector) -> Vector:
        return Vector(core, self._matrix)

    def __add__(self, other: Vector) -> Vector:
        if not isinstance(other, Vector):
            return NotImplemented
        return self._of(self._core.sum(other._core))

    def __sub__(self, other: Vector) -> Vector:
        if not isinstance(other, Vector):
            return NotImplemented
        return self._of(self._core.difference(other._core))

    def __neg__(self) -> Vector:
        return self * -1

    def __mul__(self, other: Any) -> Vector:
        if isinstance(other, Vector):
            return self._of(self._core.times(other._core))
        factor = _as_scalar(other)
        return NotImplemented if factor is None else self._of(self._core.scaled(factor._core))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Vector:
        divisor = _as_scalar(other)
        return NotImplemented if divisor is None else self._of(self._core.divided(divisor._core))

    def __iadd__(self, other: Vector) -> Vector:
        if not isinstance(other, Vector):
            return NotImplemented
        self._core.add(other._core)
        return self

    def __isub__(self, other: Vector) -> Vector:
        if not isinstance(other, Vector):
            return NotImplemented
        self._core.subtract(other._core)
        return self

    def __imul__(self, other: Any) -> Vector:
        if isinstance(other, Vector):
            self._core = self._core.times(other._core)
            return self
        factor = _as_scalar(other)
        if factor is None:
            return NotImplemented
        self._core.scale(factor._core)
        return self

    def __itruediv__(self, other: Any) -> Vector:
        divisor = _as_scalar(other)
        if divisor is None:
            return NotImplemented
        self._core.scale((1 / divisor)._core)
        return self

    def __eq__(self, other: object) -> bool:
        raise InvalidType("vectors aren't compared; compare x.to_array(), or norm(x - y)")

    def __copy__(self) -> Vector:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Vector:
        return self.copy()

    def copy(self) -> Vector:
        """The same content, which shares memory until one of the two changes."""
        return self._of(self._core.copy())

    def to_array(self) -> NDArray:
        """Wait, and copy the vector to the host: an array of shape (n,)."""
        out = np.empty(self.shape, self.dtype)
        self._core.copy_to(out.ctypes.data, out)
        return out

    def __repr__(self) -> str:
        return f"<Vector of {self.shape[0]} elements, {self.dtype}, on devices>"


class Matrix:
    """A square matrix in parts on the devices, to write methods of one's own with.

    ``A @ x`` is a `Vector`. Operators on vectors and scalars submit tasks and return; what copies
    to or from the host waits: ``float(s)``, ``bool(s)``, ``x.to_array()``, ``A.vector(values)``.
    Parts and sums are those of `Solver`: results are bitwise identical for any number of devices of
    a kind. After a failure, as that of a lost device, or Ctrl-C, the matrix and what it made are of
    no use any more.

    Parameters
    ----------
    A : sparse array, matrix, array_like, path or `RowBlocks`
        Of shape (n, n), as for `cg`; it needn't be hermitian.
    format, parts, dtype
        As of `Solver`.
    engine, devices
        See `quadriga.sparse`.

    Raises
    ------
    InvalidArgument
        As `Solver`; and if vectors of another matrix, or of another length, are given.

    Examples
    --------
    Steepest descent:

    >>> import numpy as np
    >>> from quadriga import sparse
    >>> A = sparse.Matrix(sparse.poisson((6, 6)), devices="emulated:2")
    >>> x, r = A.zeros(), A.vector(np.ones(36))
    >>> while sparse.norm(r) > 1e-6:
    ...     q = A @ r
    ...     alpha = sparse.dot(r, r) / sparse.dot(r, q)
    ...     x += alpha * r
    ...     r -= alpha * q
    >>> bool(np.allclose((A @ x).to_array(), 1))
    True
    """

    __array_ufunc__ = None

    @mapped.checks()
    def __init__(
        self,
        A: MatrixLike | RowBlocks,
        *,
        format: str = "auto",
        parts: int | None = None,
        dtype: npt.DTypeLike | None = None,
        engine: Engine | None = None,
        devices: str | Machine | None = None,
    ) -> None:
        matrix = as_rows(A, None if dtype is None else common_type(np.dtype(dtype)))
        wanted = 0 if parts is None else whole("parts", parts, 1, 2**16)
        given = preconditioner_of(None, matrix)
        storage = Storage(number_of("format", format, FORMATS), given, wanted, None)
        #: Where it is.
        self.engine = engine_for(engine, devices)
        #: (n, n)
        self.shape = matrix.shape
        #: What it computes in.
        self.dtype = matrix.dtype
        with readable(matrix) as rows:
            options = core_options(storage, 0)
            self._core = _core.SparseMatrix(self.engine.core, rows, options, matrix)

    @mapped.checks()
    def vector(self, values: ArrayLike) -> Vector:
        """A vector of the matrix's type with a copy of values of shape (n,)."""
        array = np.asarray(on_host(values))
        settle(array)
        check_type(array.dtype, "values")
        if array.shape != self.shape[:1]:
            raise InvalidArgument(
                f"values has shape {array.shape}; expected ({self.shape[0]},), as the matrix"
            )
        if array.dtype.kind == "c" and self.dtype.kind != "c":
            raise InvalidType(
                f"values is {array.dtype}, and the matrix is {self.dtype}; make it with "
                "dtype=complex"
            )
        array = np.ascontiguousarray(array, self.dtype)
        return self._vector(self._core.vector(array.ctypes.data, array))

    def zeros(self) -> Vector:
        """A vector of zeros."""
        return self._vector(self._core.zeros())

    def __matmul__(self, x: Vector) -> Vector:
        """The product with a vector of this matrix."""
        if not isinstance(x, Vector):
            raise InvalidType(
                f"the matrix is multiplied with a {type(x).__name__}; expected a Vector, as "
                "A.vector(array) makes one"
            )
        return self._vector(self._core.product(x._core))

    def _vector(self, core: _core.SparseVector) -> Vector:
        return Vector(core, self)

    def __repr__(self) -> str:
        return f"<Matrix of order {self.shape[0]}, {self.dtype}, on devices>"


def dot(x: Vector, y: Vector) -> Scalar:
    """The dot product of two vectors of a matrix, ``x.conj() @ y``: a scalar on a device."""
    for each in (x, y):
        if not isinstance(each, Vector):
            raise InvalidType(f"dot() of a {type(each).__name__}; expected vectors of a Matrix")
    return _scalar(x._core.dot(y._core), x._matrix.engine)


def norm(x: Vector) -> Scalar:
    """The Euclidean norm of a vector of a matrix: a scalar on a device."""
    squared = dot(x, x)
    return (squared.real if x.dtype.kind == "c" else squared).sqrt()


def _scalar(core: _core.SparseScalar, engine: Engine | None) -> Scalar:
    scalar = Scalar.__new__(Scalar)
    scalar._core = core
    scalar._engine = engine
    return scalar


def _as_scalar(value: Any) -> Scalar | None:
    """A scalar, or a number as one; None: something else."""
    if isinstance(value, Scalar):
        return value
    return Scalar(complex(value)) if isinstance(value, _NUMBERS) else None
