# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/functions.py: cg, bicgstab, gmres and minres with SciPy's signatures.
"""Solvers of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ..engine import Engine
from ..errors import InvalidArgument
from ..linalg.arrays import check_type
from ..machine import Machine
from ..typing import Array, ArrayLike, HostArrayLike, MatrixLike, OperatorLike, PreconditionerLike
from .matrices import common_type, on_host
from .on_device import is_on_device, solve_on_device
from .operators import solve_by_scipy
from .preconditioners import Aggregation, is_ours
from .row_blocks import RowBlocks, as_rows, has_rows
from .solver import SingleUse

NDArray = npt.NDArray[Any]
Callback = Callable[[NDArray], object] | None


@overload
def cg(
    A: MatrixLike | RowBlocks | OperatorLike, b: HostArrayLike, x0: ArrayLike | None = ..., *,
    rtol: float = ..., atol: float = ..., maxiter: int | None = ...,
    M: PreconditionerLike | Aggregation | None = ..., callback: Callback = ...,
    progress: Callable[[float], object] | None = ..., precision: str | None = ...,
    engine: Engine | None = ..., devices: str | Machine | None = ...,
) -> tuple[NDArray, int]: ...  # fmt: skip
@overload
def cg(
    A: MatrixLike | RowBlocks | OperatorLike, b: ArrayLike, x0: ArrayLike | None = ..., *,
    rtol: float = ..., atol: float = ..., maxiter: int | None = ...,
    M: PreconditionerLike | Aggregation | None = ...,
    callback: Callable[[Any], object] | None = ...,
    progress: Callable[[float], object] | None = ..., precision: str | None = ...,
    engine: Engine | None = ..., devices: str | Machine | None = ...,
) -> tuple[Array, int]: ...  # fmt: skip
def cg(
    A: MatrixLike | RowBlocks | OperatorLike,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: PreconditionerLike | Aggregation | None = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[float], object] | None = None,
    precision: str | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
) -> tuple[Array, int]:
    """Solve ``A @ x = b`` by conjugate gradients, as `scipy.sparse.linalg.cg`.

    Parameters
    ----------
    A : sparse array, matrix, array_like, path, `RowBlocks`, LinearOperator or callable
        Hermitian and positive definite, of shape (n, n). An operator or a function of NumPy arrays
        is called on the host; if `b` is an array of CuPy or PyTorch on a GPU, with such arrays, and
        then neither vectors nor x leave that GPU.
    b : array_like
        Of shape (n,), (n, 1) or (n, k) for k right-hand sides, which share each product.
    x0, rtol, atol, maxiter, callback, progress
        As in `Solver.solve`.
    M : {"jacobi", "block_jacobi", "chebyshev", "aggregation"}, array_like, `Aggregation`, \
            hierarchy or LinearOperator, optional
        The preconditioner, which approximates the inverse of A, as of `Solver`. An operator is
        called on the host: vectors are copied there in each iteration, and devices compute only the
        product. Where A is called with arrays of a GPU so is M, or it is a diagonal there.
    precision : {None, "mixed"}
        As in `Solver`, if neither A nor M is an operator.
    engine, devices
        See `quadriga.sparse`.

    Returns
    -------
    x : ndarray
        Of shape (n,), or (n, k). The last iterate if the solve failed. An array as `b` is where A
        is an operator on arrays of a GPU.
    info : int
        0 only if ``norm(b - A @ x)``, recomputed, meets the tolerance; the number of iterations
        if it doesn't; -1 after a breakdown, which a `LinAlgWarning` describes.

    Raises
    ------
    InvalidArgument
        If shapes, types or values aren't accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import sparse
    >>> x, info = sparse.cg(np.diag([1.0, 2.0, 4.0]), [1.0, 1.0, 1.0])
    >>> x.round(6), info
    (array([1.  , 0.5 , 0.25]), 0)
    """
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    options["callback"] = callback
    if is_on_device(b) and not has_rows(A):
        _refuse_where(engine=engine, devices=devices, precision=precision)
        return solve_on_device(A, b, x0, M, **options)
    right = _right_side(b)
    if not has_rows(A) or not is_ours(M):
        if precision is not None:
            raise InvalidArgument(
                f"precision is {precision!r}, and A or M is an operator; expected None"
            )
        return solve_by_scipy("cg", A, right, x0, M, options, engine, devices)
    matrix: Any = as_rows(A)
    wanted = common_type(matrix.dtype, right.dtype)
    solver = SingleUse(
        matrix, M=M, precision=precision, dtype=wanted, engine=engine, devices=devices
    )
    result = solver.solve(right, _flat(x0), progress=progress, **options)
    result.warn(stacklevel=2)
    return result.x, result.info


def bicgstab(
    A: MatrixLike | RowBlocks | OperatorLike,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: PreconditionerLike | Aggregation | None = None,
    callback: Callback = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
) -> tuple[NDArray, int]:
    """Solve ``A @ x = b`` with any square A, as `scipy.sparse.linalg.bicgstab`.

    The devices compute products, SciPy computes the rest on the host; k right-hand sides, of shape
    (n, k), share each product, and then there is no `callback`. `info` is 0 only if
    ``norm(b - A @ x)``, recomputed, meets the tolerance. Arguments are those of `cg`.
    """
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    options["callback"] = callback
    return solve_by_scipy("bicgstab", A, _right_side(b), x0, M, options, engine, devices)


def gmres(
    A: MatrixLike | RowBlocks | OperatorLike,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: PreconditionerLike | Aggregation | None = None,
    callback: Callback = None,
    callback_type: str = "legacy",
    engine: Engine | None = None,
    devices: str | Machine | None = None,
) -> tuple[NDArray, int]:
    """Solve ``A @ x = b`` with any square A, as `scipy.sparse.linalg.gmres`.

    The devices compute products, SciPy computes the rest on the host; k right-hand sides, of shape
    (n, k), share each product, and then there is no `callback`. `info` is 0 only if
    ``norm(b - A @ x)``, recomputed, meets the tolerance. `restart`, `maxiter` and
    `callback_type` are SciPy's, other arguments those of `cg`.
    """
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    options |= {"restart": restart, "callback": callback, "callback_type": callback_type}
    return solve_by_scipy("gmres", A, _right_side(b), x0, M, options, engine, devices)


def minres(
    A: MatrixLike | RowBlocks | OperatorLike,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: PreconditionerLike | Aggregation | None = None,
    callback: Callback = None,
    show: bool = False,
    check: bool = False,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
) -> tuple[NDArray, int]:
    """Solve ``(A - shift * I) @ x = b`` with a hermitian A, as `scipy.sparse.linalg.minres`.

    The devices compute products, SciPy computes the rest on the host; k right-hand sides, of shape
    (n, k), share each product, and then there is no `callback`. `info` is 0 only if the
    residual, recomputed, is at most ``rtol * norm(b)``. `shift`, `show` and `check` are SciPy's,
    other arguments those of `cg`.
    """
    options: dict[str, Any] = {"rtol": rtol, "maxiter": maxiter, "callback": callback}
    options |= {"shift": shift, "show": show, "check": check}
    return solve_by_scipy("minres", A, _right_side(b), x0, M, options, engine, devices)


def _refuse_where(**options: Any) -> None:
    """An operator on arrays of a device runs where they are."""
    for name, value in options.items():
        if value is not None:
            raise InvalidArgument(
                f"{name} is {value!r}, and A is called with arrays on the device of b; expected "
                "None"
            )


def _flat(vector: Any) -> Any:
    """SciPy takes a column for a vector."""
    if vector is None:
        return None
    array = np.asarray(on_host(vector))
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _right_side(b: Any) -> NDArray:
    array: NDArray = _flat(b)
    check_type(array.dtype, "b")
    if array.ndim not in (1, 2):
        raise InvalidArgument(f"b has shape {array.shape}; expected (n,) or (n, k)")
    return array
