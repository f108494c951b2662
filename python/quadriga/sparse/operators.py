# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/operators.py: SciPy's iterations on products of the devices, and on
# operators of the user's.
"""What isn't iterated on the devices: operators of the user's, and methods other than CG."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import mapped
from ..engine import Engine
from ..errors import InvalidArgument
from ..machine import Machine
from .columns import Columns
from .matrices import common_type, need_scipy, on_host
from .row_blocks import as_rows, has_rows
from .solver import SingleUse

Array = npt.NDArray[Any]
#: Further calls from the x so far, where the residual is above the tolerance after all.
_TRIES = 3


@mapped.checks()
def solve_by_scipy(
    name: str,
    A: Any,
    b: Array,
    x0: Any,
    M: Any,
    options: dict[str, Any],
    engine: Engine | None,
    devices: str | Machine | None,
) -> tuple[Array, int]:
    """A method of SciPy's by its name, with products of ours, until the true residual says so.

    Several right-hand sides are as many iterations that share their products.
    """
    need_scipy(f"{name}() with an operator" if name == "cg" else f"{name}()")
    from scipy.sparse import linalg

    operator = _as_operator(A, b, engine, devices)
    precondition = _as_preconditioner(M, A, operator)
    method = getattr(linalg, name)
    if b.ndim == 1:
        return _solve(method, operator, b, x0, precondition, options)
    return _solve_columns(method, operator, b, x0, precondition, options)


def _solve(
    method: Any, operator: Any, b: Array, x0: Any, M: Any, options: dict[str, Any]
) -> tuple[Array, int]:
    """With one right-hand side."""
    shift, rtol = options.get("shift", 0.0), options["rtol"]
    tolerance = max(options.get("atol", 0.0), rtol * float(np.linalg.norm(b)))
    x, info = method(operator, b, x0, M=M, **options)
    for _ in range(_TRIES):
        residual = _residual(operator, shift, x, b)
        if info != 0 or residual <= tolerance:
            return x, info
        # minres() compares with norm(A) * norm(x).
        rtol *= tolerance / residual / 2
        x, info = method(operator, b, x, M=M, **(options | {"rtol": rtol}))
    met = _residual(operator, shift, x, b) <= tolerance
    return x, info if met else max(1, info)


def _solve_columns(
    method: Any, operator: Any, b: Array, x0: Any, M: Any, options: dict[str, Any]
) -> tuple[Array, int]:
    from scipy.sparse.linalg import LinearOperator, aslinearoperator

    if options.get("callback") is not None:
        raise InvalidArgument(
            f"callback is given, and b has shape {b.shape}: its columns have iterations of their "
            f"own; expected b of shape ({b.shape[0]},)"
        )
    if x0 is not None and np.shape(x0) != b.shape:
        raise InvalidArgument(f"x0 has shape {np.shape(x0)}; expected that of b, {b.shape}")
    if b.shape[1] == 0:
        return np.zeros(b.shape, common_type(b.dtype, operator.dtype)), 0
    columns = Columns(operator.matmat)
    given = None if M is None else aslinearoperator(M)

    def solve(column: int) -> tuple[Array, int]:
        def operator_of(shape: Any, dtype: Any, call: Any) -> Any:
            return LinearOperator(shape, matvec=call, dtype=dtype)

        a = operator_of(operator.shape, operator.dtype, lambda v: columns.multiply(column, v))
        m = given and operator_of(given.shape, given.dtype, columns.alone(given.matvec))
        begin = None if x0 is None else np.asarray(x0)[:, column]
        return _solve(method, a, np.ascontiguousarray(b[:, column]), begin, m, options)

    found = columns.run(b.shape[1], solve)
    infos = [info for _, info in found]
    return np.stack([x for x, _ in found], axis=1), min(infos) if min(infos) < 0 else max(infos)


def _residual(operator: Any, shift: float, x: Array, b: Array) -> float:
    return float(np.linalg.norm(b - (operator.matvec(x) - shift * x)))


def _as_operator(A: Any, b: Array, engine: Engine | None, devices: str | Machine | None) -> Any:
    from scipy.sparse.linalg import LinearOperator, aslinearoperator

    if has_rows(A):
        matrix: Any = as_rows(A)
        wanted = common_type(matrix.dtype, b.dtype)
        solver = SingleUse(matrix, dtype=wanted, engine=engine, devices=devices)
        n = solver.shape[0]
        if b.shape[0] != n:
            raise InvalidArgument(f"b has shape {b.shape}; expected ({n},) or ({n}, k)")
        product = solver.__matmul__
        return LinearOperator(solver.shape, matvec=product, matmat=product, dtype=wanted)
    if hasattr(A, "matvec"):
        return aslinearoperator(A)
    if callable(A):
        return LinearOperator((b.shape[0],) * 2, matvec=A, dtype=common_type(b.dtype))
    raise InvalidArgument(f"A is a {type(A).__name__}; expected a matrix, a path or an operator")


def _as_preconditioner(M: Any, A: Any, operator: Any) -> Any:
    from scipy.sparse import diags_array

    if isinstance(M, str):
        if M != "jacobi" or not has_rows(A):
            expected = "'jacobi' (of a matrix), a diagonal or an operator"
            raise InvalidArgument(f"M is {M!r}; expected {expected}")
        return diags_array(1 / _diagonal(A))
    if M is not None and np.ndim(M) == 1 and not hasattr(M, "matvec"):
        return diags_array(np.asarray(on_host(M)))
    return M


def _diagonal(A: Any) -> Array:
    """Of a matrix; each element must be usable."""
    diagonal = as_rows(A).diagonal()
    bad = np.flatnonzero((diagonal == 0) | ~np.isfinite(diagonal))
    if bad.size:
        what = "zero" if diagonal[bad[0]] == 0 else "not finite"
        raise InvalidArgument(f"Jacobi preconditioner: the diagonal of row {bad[0]} is {what}")
    return diagonal
