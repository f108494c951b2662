# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/solves.py: cholesky, solve and solve_triangular.
"""Cholesky factorization and solution of linear systems."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..arguments import either
from ..engine import Engine
from ..errors import InvalidArgument, SingularMatrix, Unavailable
from ..foreign import DeviceArray, Kind, kind_of, share_memory
from ..machine import Machine
from ..typing import Array, ArrayLike, CudaArrayT, HostArrayLike, OutT, Progress, Trans
from .arrays import (
    Dense,
    DType,
    Input,
    as_input,
    as_output,
    by_columns,
    common_type,
    in_type,
    lapack_type,
    to_overwrite,
    without_conjugate,
    writable,
)
from .arrays import check_finite as refuse_infinite
from .arrays import check_symmetric as refuse_asymmetric
from .condition import bound_of, inverse_norm, largest_of, norms, one_norm, warn_of_condition
from .factor import factorize, solve_in_place, square
from .run import op_of, start
from .sources import Source

# What SciPy's solve() knows beside positive definite matrices.
_STRUCTURES = (
    "general",
    "gen",
    "diagonal",
    "tridiagonal",
    "banded",
    "sym",
    "symmetric",
    "her",
    "hermitian",
    "upper triangular",
    "lower triangular",
)


@overload
def cholesky(
    a: ArrayLike, lower: bool = ..., overwrite_a: bool = ..., check_finite: bool = ..., *,
    out: OutT, check_symmetric: bool | float = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> OutT: ...  # fmt: skip
@overload
def cholesky(
    a: HostArrayLike, lower: bool = ..., overwrite_a: bool = ..., check_finite: bool = ..., *,
    out: None = ..., check_symmetric: bool | float = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> npt.NDArray[Any]: ...  # fmt: skip
@overload
def cholesky(
    a: CudaArrayT, lower: bool = ..., overwrite_a: bool = ..., check_finite: bool = ..., *,
    out: None = ..., check_symmetric: bool | float = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> CudaArrayT: ...  # fmt: skip
@overload
def cholesky(
    a: ArrayLike, lower: bool = ..., overwrite_a: bool = ..., check_finite: bool = ..., *,
    out: None = ..., check_symmetric: bool | float = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> Array: ...  # fmt: skip
@mapped.checks()
def cholesky(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    out: OutT | None = None,
    check_symmetric: bool | float = False,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Array | OutT:
    """The Cholesky factor of a matrix, as `scipy.linalg.cholesky`.

    Parameters
    ----------
    a : array_like or source
        Hermitian and positive definite, of shape (n, n); only the triangle given by `lower` is
        read.
    lower : bool
        Compute the lower factor, ``a = l @ l.conj().T``, instead of the upper one.
    overwrite_a : bool
        Whether the factor may be written to `a`; this saves memory of the same size.
    check_finite : bool
        Reject infinities and NaNs in arrays.
    out : array, optional
        Receives the factor, whose shape and type it has; for example a memory-mapped file.
    check_symmetric : bool or float
        Reject a matrix that differs from its conjugate transpose by more than this number times its
        largest element; True stands for 100 times the type's precision.
    tile, reproducible, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    array
        `out`, or an array of the shape, library and device of `a`; its other triangle is zero.

    Raises
    ------
    NotPositiveDefinite
        A `numpy.linalg.LinAlgError` that names the leading minor.

    Examples
    --------
    >>> from quadriga import linalg
    >>> linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    array([[2., 1.],
           [0., 2.]])
    """
    matrix, lower = square(a), either("lower", lower)
    refuse_infinite(matrix, check_finite)
    refuse_asymmetric(matrix, check_symmetric)
    dtype = lapack_type(matrix)
    kind = kind_of(a) or Kind()
    source = in_type(matrix, dtype)
    if out is not None:
        target = _checked_output(out, matrix.shape, dtype)
    else:
        target = _factor_target(kind, matrix, source, overwrite_a)
    if target.size:
        with start(
            "cholesky", engine, devices, tile, progress, source, reproducible=reproducible
        ) as call:
            _core.cholesky(
                call.core,
                call.matrix(source),
                call.matrix(target),
                lower,
                call.options(source, target),
            )
    return kind.give(target) if out is None else out


def _factor_target(kind: Kind, given: Input, matrix: Input, overwrite: bool) -> Dense:
    """Where a factor goes: to the matrix, if that may be overwritten or is a copy anyhow."""
    if isinstance(matrix, DeviceArray):
        if matrix is not given or (overwrite and matrix.writeable):
            return matrix
    elif isinstance(matrix, np.ndarray) and matrix.flags.writeable:
        copied = isinstance(given, np.ndarray) and not np.may_share_memory(matrix, given)
        if overwrite or copied:
            return matrix
    return kind.make(matrix.shape, matrix.dtype)


def _checked_output(out: Any, shape: tuple[int, ...], dtype: DType) -> Dense:
    found = as_output(out, "out")
    if found.shape != shape or found.dtype != dtype:
        raise InvalidArgument(
            f"out is {found.dtype} of {found.shape}; expected an array, {dtype} of {shape}"
        )
    return writable(found, "out")


@overload
def solve(
    a: ArrayLike, b: HostArrayLike, lower: bool = ..., overwrite_a: bool = ...,
    overwrite_b: bool = ..., check_finite: bool = ..., assume_a: str | None = ...,
    transposed: bool = ..., *, check_symmetric: bool | float = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> npt.NDArray[Any]: ...  # fmt: skip
@overload
def solve(
    a: ArrayLike, b: CudaArrayT, lower: bool = ..., overwrite_a: bool = ...,
    overwrite_b: bool = ..., check_finite: bool = ..., assume_a: str | None = ...,
    transposed: bool = ..., *, check_symmetric: bool | float = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> CudaArrayT: ...  # fmt: skip
@overload
def solve(
    a: ArrayLike, b: ArrayLike, lower: bool = ..., overwrite_a: bool = ..., overwrite_b: bool = ...,
    check_finite: bool = ..., assume_a: str | None = ..., transposed: bool = ..., *,
    check_symmetric: bool | float = ..., tile: int | None = ..., reproducible: bool | None = ...,
    engine: Engine | None = ..., devices: str | Machine | None = ..., progress: Progress = ...,
) -> Array: ...  # fmt: skip
@mapped.checks()
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
    *,
    check_symmetric: bool | float = False,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Array:
    """Solve ``a @ x = b`` for x, as `scipy.linalg.solve`.

    Parameters
    ----------
    a : array_like or source
        Hermitian and positive definite, of shape (n, n).
    b : array_like
        One right-hand side, of shape (n,), or k of them, of shape (n, k).
    lower : bool
        Read the lower triangle of `a` instead of the upper one.
    overwrite_a, overwrite_b : bool
        Whether `a` may be overwritten by its factor, and `b` by the solution.
    check_finite : bool
        Reject infinities and NaNs in arrays.
    assume_a : {"pos", "positive definite", None}
        The structure of `a`. None: check that it is hermitian. SciPy's others aren't available.
    transposed : bool
        Solve ``a.T @ x = b``; for real matrices only.
    check_symmetric : bool or float
        As in `cholesky`.
    tile, reproducible, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    array
        Of the shape, library and device of `b`.

    Raises
    ------
    NotPositiveDefinite
        A `numpy.linalg.LinAlgError` that names the leading minor.
    Unavailable
        If `assume_a` is a structure that SciPy knows and Quadriga doesn't.

    Warns
    -----
    LinAlgWarning
        If the matrix is singular to working precision. The 1-norm of its inverse is estimated, as
        LAPACK does, where the solution is so large that half of the digits are lost.
    """
    _check_structure(assume_a)
    matrix, right = as_input(a, "a"), as_input(b, "b")
    kind, lower = kind_of(b) or Kind(), either("lower", lower)
    if isinstance(matrix, np.ndarray):
        matrix = np.atleast_2d(matrix)
    refuse_infinite(matrix, check_finite)
    refuse_infinite(right, check_finite)
    if matrix.ndim != 2:
        raise InvalidArgument(f"a has {matrix.ndim} dimensions; expected 2")
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidArgument(f"Expected square matrix, got a1.shape={matrix.shape}")
    dtype = common_type(matrix, right)
    if transposed and dtype.char in "FD":
        raise NotImplementedError("can't solve a^T x = b or a^H x = b for complex matrices")
    if isinstance(right, np.ndarray):
        right = np.atleast_1d(right)
    # To SciPy, a matrix of one element is a number, whatever is known of it, that divides all.
    scalar = matrix.shape == (1, 1) and isinstance(matrix, np.ndarray)
    if right.ndim > 2 or (right.shape[0] != matrix.shape[0] and not scalar):
        raise InvalidArgument(
            f"incompatible shapes: a1.shape={matrix.shape} and b1.shape={right.shape}"
        )
    undecided = assume_a is None and not (isinstance(matrix, Source) and matrix.hermitian)
    refuse_asymmetric(matrix, check_symmetric or (undecided and not scalar))
    if 0 in right.shape:
        return kind.give(kind.make(right.shape, dtype))
    x = to_overwrite(by_columns(right), dtype, overwrite_b and not share_memory(right, matrix))
    if scalar and isinstance(x, np.ndarray):
        assert isinstance(matrix, np.ndarray)
        return kind.give(_divided(x, np.asarray(matrix, dtype)[0, 0]))
    # The share of the whole work that the factorization is.
    rights = 1 if x.ndim == 1 else x.shape[1]
    share = matrix.shape[0] / (matrix.shape[0] + 6 * rights)
    largest, sizes = largest_of(matrix), norms(x)
    with start("solve", engine, devices, tile, progress, matrix, reproducible=reproducible) as call:
        factor = factorize(call, matrix, lower, overwrite_a, dtype, (0.0, share))
        solve_in_place(call, factor, x, (share, 1.0))
        bound, is_large = bound_of(largest, sizes, x, dtype)
        if is_large and isinstance(matrix, np.ndarray):
            norm = largest if overwrite_a else one_norm(matrix, lower)
            again = lambda right: solve_in_place(call, factor, right, (1.0, 1.0))  # noqa: E731
            bound = max(bound, norm * inverse_norm(again, len(matrix), dtype))
    warn_of_condition(bound, dtype)
    return kind.give(x)


def _divided(x: npt.NDArray[Any], divisor: Any) -> npt.NDArray[Any]:
    if divisor == 0:
        raise SingularMatrix("A singular matrix detected.")
    x /= divisor
    return x


def _check_structure(assume_a: str | None) -> None:
    if assume_a in (None, "pos", "positive definite"):
        return
    if assume_a in _STRUCTURES:
        raise Unavailable(
            f"assume_a={assume_a!r} isn't available; positive definite systems ('pos') are, and "
            "solve_triangular"
        )
    raise InvalidArgument(f"{assume_a} is not a recognized matrix structure")


@overload
def solve_triangular(
    a: ArrayLike, b: HostArrayLike, trans: Trans = ..., lower: bool = ...,
    unit_diagonal: bool = ..., overwrite_b: bool = ..., check_finite: bool = ..., *,
    tile: int | None = ..., reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> npt.NDArray[Any]: ...  # fmt: skip
@overload
def solve_triangular(
    a: ArrayLike, b: CudaArrayT, trans: Trans = ..., lower: bool = ..., unit_diagonal: bool = ...,
    overwrite_b: bool = ..., check_finite: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> CudaArrayT: ...  # fmt: skip
@overload
def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: Trans = ..., lower: bool = ..., unit_diagonal: bool = ...,
    overwrite_b: bool = ..., check_finite: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> Array: ...  # fmt: skip
@mapped.checks()
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: Trans = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Array:
    """Solve ``a @ x = b`` with a triangular matrix, as `scipy.linalg.solve_triangular`.

    Parameters
    ----------
    a : array_like or source
        Of shape (n, n); only the triangle given by `lower` is read.
    b : array_like
        One right-hand side, of shape (n,), or k of them, of shape (n, k).
    trans : {0, 1, 2, 'N', 'T', 'C'}
        Solve with `a`, its transpose, or its conjugate transpose.
    lower : bool
        Whether `a` is lower triangular.
    unit_diagonal : bool
        Whether the diagonal is taken to be 1.
    overwrite_b : bool
        Whether the solution may be written to `b`.
    check_finite : bool
        Reject infinities and NaNs in arrays.
    tile, reproducible, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    array
        Of the shape, library and device of `b`.

    Raises
    ------
    SingularMatrix
        A `numpy.linalg.LinAlgError`, if there is a zero on the diagonal of an array.

    Examples
    --------
    >>> from quadriga import linalg
    >>> linalg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True)
    array([1., 2.])
    """
    matrix, right = as_input(a, "a"), as_input(b, "b")
    lower, unit_diagonal = either("lower", lower), either("unit_diagonal", unit_diagonal)
    refuse_infinite(matrix, check_finite)
    refuse_infinite(right, check_finite)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidArgument("expected square matrix")
    if right.ndim not in (1, 2) or matrix.shape[0] != right.shape[0]:
        raise InvalidArgument(f"shapes of a {matrix.shape} and b {right.shape} are incompatible")
    dtype = lapack_type(matrix, right)
    kind = kind_of(b) or Kind()
    if 0 in right.shape:
        return kind.give(kind.make(right.shape, dtype))
    if isinstance(matrix, np.ndarray) and not unit_diagonal:
        zeros = np.flatnonzero(matrix.diagonal() == 0)
        if zeros.size:
            raise SingularMatrix(f"singular matrix: resolution failed at diagonal {zeros[0]}")
    triangle, op = without_conjugate(in_type(matrix, dtype), op_of(trans))
    x = to_overwrite(right, dtype, overwrite_b)
    with start(
        "solve_triangular", engine, devices, tile, progress, triangle, reproducible=reproducible
    ) as call:
        _core.solve_triangular(
            call.core,
            call.matrix(triangle),
            lower,
            op,
            unit_diagonal,
            call.matrix(x),
            call.options(triangle, x),
        )
    return kind.give(x)
