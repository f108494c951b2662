# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/products.py: matmul, syrk and herk.
"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..engine import Engine
from ..errors import InvalidArgument, InvalidType
from .arrays import (
    Array,
    DType,
    Input,
    as_input,
    common_type,
    in_type,
    lapack_type,
    matrix_of,
    writable,
)
from .run import Devices, Progress, Trans, op_of, start
from .sources import Source

_SIGNATURE = "gufunc signature (n?,k),(k,m?)->(n?,m?)"


def matmul(
    a: Any,
    b: Any,
    out: Array | None = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    trans_a: Trans = 0,
    trans_b: Trans = 0,
    tile: int | None = None,
    engine: Engine | None = None,
    devices: Devices = None,
    progress: Progress = None,
) -> Any:
    """The product ``alpha * op(a) @ op(b) + beta * out``, as `numpy.matmul` for 1 and 2 dimensions.

    Parameters
    ----------
    a, b : array_like or source
        Integers are promoted to float64.
    out : ndarray, optional
        Where the product goes; shares no memory with `a` or `b`. Needed if `beta` isn't 0.
    alpha, beta : scalar
    trans_a, trans_b : {0, 1, 2, 'N', 'T', 'C'}
        1 or 'T': the transpose of a matrix, 2 or 'C': the conjugate transpose.
    tile, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    ndarray or scalar
        `out` if it was given.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import linalg
    >>> linalg.matmul(np.eye(2), [[1.0, 2.0], [3.0, 4.0]], trans_b="T")
    array([[1., 3.],
           [2., 4.]])
    """
    left, right = (_operand(each, index) for index, each in enumerate((a, b)))
    dtype = _scaled_type(common_type(left, right), alpha, beta, out)
    op_a, op_b = op_of(trans_a, "trans_a"), op_of(trans_b, "trans_b")
    row = left.ndim == 1
    left, right = in_type(left, dtype), in_type(right, dtype)
    if row:
        assert isinstance(left, np.ndarray)
        left, op_a = left[None, :], 0
    op_b = op_b if right.ndim == 2 else 0
    shape, inner = _product_shape(left, op_a, right, op_b)
    wanted = shape[1 if row else 0 : 1 if right.ndim == 1 else 2]
    target = _target(out, wanted, dtype, beta)
    view = target.reshape(shape) if target.ndim < 2 and out is None else target
    if out is not None and target.ndim == 1:
        view = target[None, :] if row else target
    if inner == 0 or target.size == 0:
        target[...] = beta * target if beta != 0 else 0
        return target if out is not None or target.ndim else target[()]
    with start("matmul", engine, devices, tile, progress, left, right) as call:
        _core.matmul(
            call.core,
            complex(alpha),
            matrix_of(left),
            op_a,
            matrix_of(right),
            op_b,
            complex(beta),
            matrix_of(view),
            call.options(left, right, target, view),
        )
    return target if out is not None or target.ndim else target[()]


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


def _scaled_type(dtype: DType, alpha: complex, beta: complex, out: Array | None) -> DType:
    """A complex factor of real matrices makes the product complex."""
    if (np.iscomplexobj(alpha) or np.iscomplexobj(beta)) and dtype.char in "fd":
        dtype = np.dtype("F" if dtype.char == "f" else "D")
    if out is not None and isinstance(out, np.ndarray) and out.dtype != dtype:
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


def _target(out: Array | None, shape: tuple[int, ...], dtype: DType, beta: complex) -> Array:
    if out is None:
        if beta != 0:
            raise InvalidArgument(f"beta is {beta}, so out must be given")
        return np.zeros(shape, dtype) if 0 in shape else np.empty(shape, dtype)
    if not isinstance(out, np.ndarray) or out.shape != shape:
        found = out.shape if isinstance(out, np.ndarray) else type(out).__name__
        raise InvalidArgument(f"out: expected an array of shape {shape}, got {found}")
    return writable(out, "out")


def syrk(
    alpha: complex,
    a: Any,
    beta: complex = 0,
    c: Array | None = None,
    trans: Trans = 0,
    lower: bool = False,
    overwrite_c: bool = False,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    devices: Devices = None,
    progress: Progress = None,
) -> Array:
    """A triangle of ``alpha * a @ a.T + beta * c``, as `scipy.linalg.blas.dsyrk`.

    Parameters
    ----------
    alpha, beta : scalar
    a : array_like or source
    c : ndarray, optional
        Added `beta` times; its other triangle is in the result as it is.
    trans : {0, 1}
        1: ``a.T @ a`` instead.
    lower : bool
        Which triangle.
    overwrite_c : bool
        Whether the result may go to `c`.
    tile, engine, devices, progress
        See `quadriga.linalg`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from quadriga import linalg
    >>> linalg.syrk(1.0, [[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [ 0., 25.]])
    """
    where = (tile, engine, devices, progress)
    op = op_of(trans)
    if op == 2 and np.iscomplexobj(a):
        raise InvalidArgument("syrk takes trans 0 or 1; herk takes the conjugate transpose")
    return _rank_k("syrk", alpha, a, beta, c, min(op, 1), lower, overwrite_c, where)


def herk(
    alpha: float,
    a: Any,
    beta: float = 0,
    c: Array | None = None,
    trans: Trans = 0,
    lower: bool = False,
    overwrite_c: bool = False,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    devices: Devices = None,
    progress: Progress = None,
) -> Array:
    """A triangle of ``alpha * a @ a.conj().T + beta * c``, as `scipy.linalg.blas.zherk`.

    Parameters are those of `syrk`, with real `alpha` and `beta`, and `trans` 0 or 2 (1 for real
    matrices, too).
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if complex(value).imag != 0:
            raise InvalidArgument(f"herk: {name} is {value}; expected a real number")
    where = (tile, engine, devices, progress)
    op = op_of(trans)
    return _rank_k("herk", alpha, a, beta, c, 2 if op else 0, lower, overwrite_c, where)


def _rank_k(
    name: str,
    alpha: complex,
    a: Any,
    beta: complex,
    c: Array | None,
    op: int,
    lower: bool,
    overwrite_c: bool,
    where: tuple[int | None, Engine | None, Devices, Progress],
) -> Array:
    given = as_input(a, "a")
    if given.ndim != 2:
        raise InvalidArgument(f"{name}: a has {given.ndim} dimensions; expected 2")
    kept: Input = given if c is None else as_input(c, "c")
    dtype = lapack_type(given, kept)
    matrix = in_type(given, dtype)
    n, k = matrix.shape if op == 0 else matrix.shape[::-1]
    target = _triangle_target(name, c, n, dtype, overwrite_c)
    if n == 0:
        return target
    if k == 0:
        matrix, alpha, op = np.zeros((n, 1), dtype), 0, 0
    tile, engine, devices, progress = where
    with start(name, engine, devices, tile, progress, matrix) as call:
        arguments = (matrix_of(matrix), op)
        options = call.options(matrix, target)
        factor = beta if c is not None else 0
        if name == "syrk":
            _core.syrk(call.core, complex(alpha), *arguments, complex(factor), matrix_of(target),
                       bool(lower), options)  # fmt: skip
        else:
            _core.herk(call.core, complex(alpha).real, *arguments, complex(factor).real,
                       matrix_of(target), bool(lower), options)  # fmt: skip
    return target


def _triangle_target(name: str, c: Array | None, n: int, dtype: DType, overwrite: bool) -> Array:
    if c is None:
        return np.zeros((n, n), dtype, order="F")
    found = as_input(c, "c")
    if isinstance(found, Source) or found.shape != (n, n):
        raise InvalidArgument(f"{name}: c has shape {found.shape}; expected {(n, n)}")
    if overwrite and found is c and found.dtype == dtype:
        return writable(found, "c")
    return np.array(found, dtype, order="F")
