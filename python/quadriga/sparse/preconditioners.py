# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/preconditioners.py: what callers give as M, for the extension.
"""Preconditioners: names, diagonals, and levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..arguments import whole
from ..errors import InvalidArgument, InvalidType
from ..linalg.arrays import check_type
from ..typing import ArrayLike
from .matrices import Csr, any_csr, on_host
from .row_blocks import RowBlocks

Array = npt.NDArray[Any]
_MOST_UNKNOWNS = 16
_MOST_DEGREE = 1000


@dataclass(frozen=True, eq=False)
class Aggregation:
    """A preconditioner by smoothed aggregation: a cycle through levels made of A.

    Nodes that depend on each other become one node of the next level, whose unknowns stand for the
    combinations of `near_null` that smoothing can't reduce (Vanek, Mandel and Brezina, 1996).
    Chebyshev polynomials smooth, scaled by the diagonal blocks of nodes; the last level, of some
    hundred rows, is solved by its inverse.

    Parameters
    ----------
    near_null : array_like, optional
        Real vectors that A nearly maps to zero, of shape (n,) or (n, k): for elasticity the six
        rigid-body motions. Default: constants, one for each unknown of a node.
    unknowns : int, optional
        Unknowns of a node, whose rows are neighbours. Default: rows of the dense blocks of 2 x 2
        to 4 x 4 elements of which the matrix consists, else 1. An `order` of the solver's keeps
        nodes together only if they are given.
    strength : float
        Nodes depend on each other if ``norm(Aij)**2 > strength**2 * norm(Aii) * norm(Ajj)``.
    degree : int
        Of the polynomials: products before and after each correction.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import sparse
    >>> a = sparse.poisson((40, 40))
    >>> solver = sparse.Solver(a, M=sparse.Aggregation(degree=1))
    >>> [level["rows"] for level in solver.plan["levels"]]
    [1600, 280]
    >>> solver.solve(np.ones(1600)).iterations < 20
    True
    """

    near_null: ArrayLike | None = None
    unknowns: int | None = None
    strength: float = 0.0
    degree: int = 2

    def preconditioner(self, rows: int) -> Preconditioner:
        """Checked, for a matrix of so many rows."""
        unknowns = 0
        if self.unknowns is not None:
            unknowns = whole("unknowns", self.unknowns, 1, _MOST_UNKNOWNS)
            if rows % unknowns != 0:
                raise InvalidArgument(f"unknowns is {unknowns}; expected a divisor of n, {rows}")
        try:
            strength = float(self.strength)
        except (TypeError, ValueError):
            raise InvalidType(f"strength is {self.strength!r}; expected a number") from None
        if not 0 <= strength < np.inf:
            raise InvalidArgument(f"strength is {strength}; expected a number of at least 0")
        degree = whole("degree", self.degree, 1, _MOST_DEGREE)
        return Preconditioner(
            5, degree=degree, near_null=_near_null(self.near_null, rows), unknowns=unknowns,
            strength=strength,
        )  # fmt: skip


def _near_null(vectors: Any, rows: int) -> Array | None:
    if vectors is None:
        return None
    array = np.asarray(on_host(vectors))
    check_type(array.dtype, "near_null")
    if array.dtype.kind == "c":
        raise InvalidType(f"near_null is {array.dtype}; expected real vectors")
    if array.ndim not in (1, 2) or array.shape[0] != rows or 0 in array.shape[1:]:
        raise InvalidArgument(
            f"near_null has shape {array.shape}; expected ({rows},) or ({rows}, k), k at least 1"
        )
    if not np.isfinite(array).all():
        raise InvalidArgument("near_null has infinities or NaNs")
    return np.ascontiguousarray(array.reshape(rows, -1), float)


@dataclass(frozen=True)
class Preconditioner:
    """By the numbers of the extension."""

    number: int
    #: Rows of its blocks; 0: the default.
    inverse_rows: int = 0
    diagonal: Array | None = None
    #: Of polynomials; 0: the default.
    degree: int = 0
    near_null: Array | None = None
    #: Of a node; 0: unknown.
    unknowns: int = 0
    strength: float = 0.0
    #: Restriction, prolongation and matrix of each level below.
    levels: tuple[tuple[Csr, Csr, Csr], ...] = ()

    def ordered(self, forth: Callable[[Array], Array]) -> Preconditioner:
        """For a matrix whose rows are in another order."""
        if self.levels:
            raise InvalidArgument("order is given, and M is a hierarchy of A's own order")
        return replace(
            self,
            diagonal=None if self.diagonal is None else forth(self.diagonal),
            near_null=None if self.near_null is None else forth(self.near_null),
        )

    def divided(self, scale: float) -> Preconditioner:
        """Of a matrix divided by `scale`; a diagonal isn't stored here."""
        return replace(
            self,
            levels=tuple(
                (down, up, replace(a, values=a.values / scale)) for down, up, a in self.levels
            ),
        )

    def set(self, options: _core.SolverOptions, dtype: np.dtype[Any]) -> list[Any]:
        """Adds what isn't a number; returns what has to live as long as the options."""
        address, vectors = 0, 0
        if self.near_null is not None:
            address, vectors = self.near_null.ctypes.data, self.near_null.shape[1]
        options.set_aggregation(address, vectors, self.unknowns, self.strength)
        used: list[Any] = [self]
        for level in self.levels:
            cast = [each.cast(dtype) for each in level]
            used.append(cast)
            options.add_level(*(each.core() for each in cast))
        return used


_NAMES = {"jacobi": 1, "block_jacobi": 3, "chebyshev": 4, "aggregation": 5}


def plain(M: Any) -> Any:
    """The diagonal of one of SciPy's matrices that has nothing else; else M as it is."""
    is_dia = getattr(M, "format", None) == "dia" and list(M.offsets) == [0]
    if not is_dia:
        return M
    mapped.watch(M.data)
    return M.diagonal()


def is_hierarchy(M: Any) -> bool:
    """Whether it looks like pyamg's: levels with A, and P and R but for the last."""
    levels = getattr(M, "levels", None)
    return isinstance(levels, list) and bool(levels) and hasattr(levels[0], "A")


def is_ours(M: Any) -> bool:
    """Whether the solver takes it: nothing, a name, a diagonal, or levels."""
    M = plain(M)
    if M is None or isinstance(M, (str, Aggregation)) or is_hierarchy(M):
        return True
    return not hasattr(M, "shape") or len(M.shape) == 1


def preconditioner_of(M: Any, matrix: Csr | RowBlocks) -> Preconditioner:
    """The arguments that describe a preconditioner M to the extension."""
    if M is None:
        return Preconditioner(0)
    if isinstance(M, Aggregation):
        return M.preconditioner(matrix.shape[0])
    if is_hierarchy(M):
        return _of_hierarchy(M.levels, matrix)
    if isinstance(M, tuple) and M and isinstance(M[0], str):
        return _with_number(M)
    if isinstance(M, str):
        if M not in _NAMES:
            raise InvalidArgument(
                f"M is {M!r}; expected one of {list(_NAMES)}, a diagonal, or None"
            )
        return Preconditioner(_NAMES[M])
    diagonal = np.asarray(on_host(plain(M)))
    check_type(diagonal.dtype, "M")
    if diagonal.shape != matrix.shape[:1]:
        raise InvalidArgument(
            f"M has shape {diagonal.shape}; expected one of {list(_NAMES)}, or a diagonal of "
            f"shape ({matrix.shape[0]},)"
        )
    if diagonal.dtype.kind == "c" and matrix.dtype.kind != "c":
        raise InvalidType(f"M is {diagonal.dtype}, and A is {matrix.dtype}; expected a real M")
    return Preconditioner(2, 0, np.ascontiguousarray(diagonal, matrix.dtype))


def _with_number(M: tuple[Any, ...]) -> Preconditioner:
    if len(M) != 2 or M[0] not in ("block_jacobi", "chebyshev"):
        raise InvalidArgument(
            f"M is {M!r}; expected ('block_jacobi', rows) or ('chebyshev', degree)"
        )
    if M[0] == "block_jacobi":
        return Preconditioner(3, whole("rows of blocks", M[1], 2, 4))
    return Preconditioner(4, degree=whole("degree", M[1], 1, _MOST_DEGREE))


def _of_hierarchy(levels: list[Any], matrix: Csr | RowBlocks) -> Preconditioner:
    """Matrices of the levels; the finest one is the solver's own."""
    finest = levels[0].A.shape
    if tuple(finest) != matrix.shape:
        raise InvalidArgument(
            f"M is a hierarchy of a matrix of shape {tuple(finest)}; A has shape {matrix.shape}"
        )
    if len(levels) == 1:
        raise InvalidArgument("M is a hierarchy of one level; expected 2 or more")
    below = []
    for above, level in zip(levels[:-1], levels[1:], strict=True):
        given = tuple(any_csr(each) for each in (above.R, above.P, level.A))
        if any(each.dtype.kind == "c" for each in given) and matrix.dtype.kind != "c":
            raise InvalidType(f"M has complex levels, and A is {matrix.dtype}")
        below.append((given[0], given[1], given[2]))
    return Preconditioner(6, levels=tuple(below))
