# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/products.py: matmul, syrk and herk.
"""Products of matrices."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..arguments import either
from ..engine import Engine
from ..errors import InvalidArgument, InvalidType
from ..foreign import DeviceArray, Kind
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
    kind_for,
    lapack_type,
    without_conjugate,
    writable,
)
from .run import op_of, start
from .sources import Source

_SIGNATURE = "gufunc signature (n?,k),(k,m?)->(n?,m?)"


@overload
def matmul(
    a: ArrayLike, b: ArrayLike, out: OutT, *, alpha: complex = ..., beta: complex = ...,
    trans_a: Trans = ..., trans_b: Trans = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> OutT: ...  # fmt: skip
@overload
def matmul(
    a: HostArrayLike, b: HostArrayLike, out: None = ..., *, alpha: complex = ...,
    beta: complex = ..., trans_a: Trans = ..., trans_b: Trans = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> npt.NDArray[Any]: ...  # fmt: skip
@overload
def matmul(
    a: CudaArrayT, b: CudaArrayT, out: None = ..., *, alpha: complex = ..., beta: complex = ...,
    trans_a: Trans = ..., trans_b: Trans = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> CudaArrayT: ...  # fmt: skip
@overload
def matmul(
    a: ArrayLike, b: ArrayLike, out: None = ..., *, alpha: complex = ..., beta: complex = ...,
    trans_a: Trans = ..., trans_b: Trans = ..., tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> Array: ...  # fmt: skip
@mapped.checks()
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    out: OutT | None = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    trans_a: Trans = 0,
    trans_b: Trans = 0,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Array | OutT:
    """The product ``alpha * op(a) @ op(b) + beta * out``, as `numpy.matmul` in 1 and 2 dimensions.

    Parameters
    ----------
    a, b : array_like or source
        Of shapes (m, k) and (k, n) after `op`, or vectors of length k. Integers are promoted to
        float64.
    out : array, optional
        Receives the product, whose shape and type it has; shares no memory with `a` or `b`.
        Required if `beta` isn't 0, or if `a` and `b` are arrays of different libraries or devices.
    alpha, beta : scalar
        Complex values make the product of real matrices complex.
    trans_a, trans_b : {0, 1, 2, 'N', 'T', 'C'}
        `op`: 1 or 'T' is the transpose of a matrix, 2 or 'C' the conjugate transpose.
    tile, reproducible, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    array or scalar
        Of shape (m, n), without the dimension that a vector lacks: `out` if it was given, else an
        array of the library and device of `a` and `b`.

    Raises
    ------
    InvalidArgument
        If shapes or types disagree, or `out` shares memory with an input.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import linalg
    >>> linalg.matmul(np.eye(2), [[1.0, 2.0], [3.0, 4.0]], trans_b="T")
    array([[1., 3.],
           [2., 4.]])
    """
    left, right = (_operand(each, index) for index, each in enumerate((a, b)))
    result = None if out is None else as_output(out, "out")
    kind = kind_for("matmul", a=a, b=b) if result is None else Kind()
    dtype = _scaled_type(common_type(left, right), alpha, beta, result)
    op_a, op_b = op_of(trans_a, "trans_a"), op_of(trans_b, "trans_b")
    row = left.ndim == 1
    left, right = in_type(left, dtype), in_type(right, dtype)
    if row:
        assert not isinstance(left, Source)
        left, op_a = _as_matrix(left, (1, left.shape[0])), 0
    op_b = op_b if right.ndim == 2 else 0
    left, op_a = without_conjugate(left, op_a)
    right, op_b = without_conjugate(right, op_b)
    shape, inner = _product_shape(left, op_a, right, op_b)
    wanted = shape[1 if row else 0 : 1 if right.ndim == 1 else 2]
    target = _target(result, kind, wanted, dtype, beta)
    view = _as_matrix(target, shape)
    if inner == 0 or target.size == 0:
        _scale(target, beta)
        return _given(out, kind, target)
    with start(
        "matmul", engine, devices, tile, progress, left, right, reproducible=reproducible
    ) as call:
        _core.matmul(
            call.core,
            complex(alpha),
            call.matrix(left),
            op_a,
            call.matrix(right),
            op_b,
            complex(beta),
            call.matrix(view),
            call.options(left, right, target, view),
        )
    return _given(out, kind, target)


def _as_matrix(array: Dense, shape: tuple[int, int]) -> Dense:
    """The same elements in two dimensions, in the same memory."""
    if array.ndim == 2:
        return array
    if isinstance(array, DeviceArray):
        return array.matrix(*shape)
    if array.ndim == 1:
        return array[None, :] if shape[0] == 1 and shape[1] != 1 else array[:, None]
    return array.reshape(shape)


def _scale(target: Dense, beta: complex) -> None:
    if isinstance(target, DeviceArray):
        if target.size:
            target.set(beta)
    else:
        target[...] = beta * target if beta != 0 else 0


def _given(out: OutT | None, kind: Kind, target: Dense) -> Array | OutT:
    """What the caller gets: NumPy's numbers are numbers, those of others arrays."""
    if out is not None:
        return out
    if target.ndim == 0 and kind == Kind():
        assert isinstance(target, np.ndarray)
        number: Array = target[()]
        return number
    return kind.give(target)


def _operand(value: Any, index: int) -> Input:
    found = as_input(value, "ab"[index])
    if found.ndim == 0:
        raise InvalidArgument(
            f"matmul: Input operand {index} does not have enough dimensions (has 0, gufunc core "
            f"with signature (n?,k),(k,m?)->(n?,m?) requires 1)"
        )
    if found.ndim > 2:
        raise InvalidArgument(
            f"matmul: input operand {index} has {found.ndim} dimensions; expected 1 or 2"
        )
    return found


def _scaled_type(dtype: DType, alpha: complex, beta: complex, out: Dense | None) -> DType:
    """A complex factor of real matrices makes the product complex."""
    if (np.iscomplexobj(alpha) or np.iscomplexobj(beta)) and dtype.char in "fd":
        dtype = np.dtype("F" if dtype.char == "f" else "D")
    if out is not None and out.dtype != dtype:
        raise InvalidType(f"out is {out.dtype}; expected {dtype}")
    return dtype


def _product_shape(left: Input, op_a: int, right: Input, op_b: int) -> tuple[tuple[int, int], int]:
    m, k = left.shape if op_a == 0 else left.shape[::-1]
    cols = right.shape if right.ndim == 2 else (right.shape[0], 1)
    inner, n = cols if op_b == 0 else cols[::-1]
    if k != inner:
        raise InvalidArgument(
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with "
            f"{_SIGNATURE} (size {inner} is different from {k})"
        )
    return (m, n), k


def _target(
    out: Dense | None, kind: Kind, shape: tuple[int, ...], dtype: DType, beta: complex
) -> Dense:
    if out is None:
        if beta != 0:
            raise InvalidArgument(f"beta is {beta}, so out must be given")
        if kind.on_device:
            return kind.make(shape, dtype, zeros=0 in shape)
        return np.zeros(shape, dtype) if 0 in shape else np.empty(shape, dtype)
    if out.shape != shape:
        raise InvalidArgument(f"out: expected an array of shape {shape}, got {out.shape}")
    return writable(out, "out")


@overload
def syrk(
    alpha: complex, a: HostArrayLike, beta: complex = ..., c: HostArrayLike | None = ...,
    trans: Trans = ..., lower: bool = ..., overwrite_c: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> npt.NDArray[Any]: ...  # fmt: skip
@overload
def syrk(
    alpha: complex, a: CudaArrayT, beta: complex = ..., c: CudaArrayT | None = ...,
    trans: Trans = ..., lower: bool = ..., overwrite_c: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> CudaArrayT: ...  # fmt: skip
@overload
def syrk(
    alpha: complex, a: ArrayLike, beta: complex = ..., c: ArrayLike | None = ...,
    trans: Trans = ..., lower: bool = ..., overwrite_c: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> Array: ...  # fmt: skip
@mapped.checks()
def syrk(
    alpha: complex,
    a: ArrayLike,
    beta: complex = 0,
    c: ArrayLike | None = None,
    trans: Trans = 0,
    lower: bool = False,
    overwrite_c: bool = False,
    *,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Array:
    """A triangle of ``alpha * a @ a.T + beta * c``, as `scipy.linalg.blas.dsyrk`.

    Parameters
    ----------
    alpha, beta : scalar
        Real for real types.
    a : array_like or source
        Of shape (n, k); with `trans`, (k, n).
    c : array, optional
        Of shape (n, n). Its other triangle is returned unchanged. Default: zeros.
    trans : {0, 1, 'N', 'T'}
        1 or 'T': ``a.T @ a`` instead. Real types also take 2 and 'C'.
    lower : bool
        Compute the lower triangle instead of the upper one.
    overwrite_c : bool
        Whether the result may be written to `c`.
    tile, reproducible, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    array
        Of shape (n, n), and of the library and device of `c`, else of `a`.

    Raises
    ------
    InvalidArgument
        If shapes, types or values disagree.

    Examples
    --------
    >>> from quadriga import linalg
    >>> linalg.syrk(1.0, [[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [ 0., 25.]])
    """
    where = (tile, reproducible, engine, devices, progress)
    op = op_of(trans)
    given = as_input(a, "a")
    for name, value in (("alpha", alpha), ("beta", beta)):
        kept = given if c is None else as_input(c, "c")
        if complex(value).imag != 0 and lapack_type(given, kept).char in "fd":
            raise InvalidArgument(f"syrk: {name} is {value}; expected a real number for real types")
    if op == 2 and given.dtype.char in "FD":
        raise InvalidArgument("syrk takes trans 0 or 1; herk takes the conjugate transpose")
    return _rank_k("syrk", alpha, a, beta, c, min(op, 1), lower, overwrite_c, where)


@overload
def herk(
    alpha: float, a: HostArrayLike, beta: float = ..., c: HostArrayLike | None = ...,
    trans: Trans = ..., lower: bool = ..., overwrite_c: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> npt.NDArray[Any]: ...  # fmt: skip
@overload
def herk(
    alpha: float, a: CudaArrayT, beta: float = ..., c: CudaArrayT | None = ..., trans: Trans = ...,
    lower: bool = ..., overwrite_c: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> CudaArrayT: ...  # fmt: skip
@overload
def herk(
    alpha: float, a: ArrayLike, beta: float = ..., c: ArrayLike | None = ..., trans: Trans = ...,
    lower: bool = ..., overwrite_c: bool = ..., *, tile: int | None = ...,
    reproducible: bool | None = ..., engine: Engine | None = ...,
    devices: str | Machine | None = ..., progress: Progress = ...,
) -> Array: ...  # fmt: skip
@mapped.checks()
def herk(
    alpha: float,
    a: ArrayLike,
    beta: float = 0,
    c: ArrayLike | None = None,
    trans: Trans = 0,
    lower: bool = False,
    overwrite_c: bool = False,
    *,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
    progress: Progress = None,
) -> Array:
    """A triangle of ``alpha * a @ a.conj().T + beta * c``, as `scipy.linalg.blas.zherk`.

    Parameters, result and errors are those of `syrk`, but `alpha` and `beta` are real, and any
    `trans` but 0 and 'N' stands for ``a.conj().T @ a``.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if complex(value).imag != 0:
            raise InvalidArgument(f"herk: {name} is {value}; expected a real number")
    where = (tile, reproducible, engine, devices, progress)
    op = op_of(trans)
    return _rank_k("herk", alpha, a, beta, c, 2 if op else 0, lower, overwrite_c, where)


def _rank_k(
    name: str,
    alpha: complex,
    a: ArrayLike,
    beta: complex,
    c: ArrayLike | None,
    op: int,
    lower: bool,
    overwrite_c: bool,
    where: tuple[int | None, bool | None, Engine | None, str | Machine | None, Progress],
) -> Array:
    given, lower = as_input(a, "a"), either("lower", lower)
    if given.ndim != 2:
        raise InvalidArgument(f"{name}: a has {given.ndim} dimensions; expected 2")
    kept: Input = given if c is None else as_input(c, "c")
    kind = kind_for(name, a=a) if c is None else kind_for(name, c=c)
    dtype = lapack_type(given, kept)
    matrix = in_type(given, dtype)
    if name == "herk":
        matrix = by_columns(matrix)
    n, k = matrix.shape if op == 0 else matrix.shape[::-1]
    target = _triangle_target(name, kind, None if c is None else kept, n, dtype, overwrite_c)
    if n == 0:
        return kind.give(target)
    if k == 0:
        matrix, alpha, op = np.zeros((n, 1), dtype), 0, 0
    tile, reproducible, engine, devices, progress = where
    with start(name, engine, devices, tile, progress, matrix, reproducible=reproducible) as call:
        arguments = (call.matrix(matrix), op)
        options = call.options(matrix, target)
        factor = beta if c is not None else 0
        if name == "syrk":
            _core.syrk(call.core, complex(alpha), *arguments, complex(factor), call.matrix(target),
                       lower, options)  # fmt: skip
        else:
            _core.herk(call.core, complex(alpha).real, *arguments, complex(factor).real,
                       call.matrix(target), lower, options)  # fmt: skip
    return kind.give(target)


def _triangle_target(
    name: str, kind: Kind, c: Input | None, n: int, dtype: DType, overwrite: bool
) -> Dense:
    if c is None:
        return kind.make((n, n), dtype, zeros=True)
    if isinstance(c, Source) or c.shape != (n, n):
        raise InvalidArgument(f"{name}: c has shape {c.shape}; expected {(n, n)}")
    if overwrite and c.dtype == dtype and (name != "herk" or by_columns(c) is c):
        return writable(c, "c")
    return c.converted(dtype) if isinstance(c, DeviceArray) else np.array(c, dtype, order="F")
