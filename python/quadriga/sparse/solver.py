# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/solver.py: a matrix that stays on the devices for many solves.
"""Conjugate gradients on parts of a matrix."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import mapped
from ..arguments import whole
from ..defaults import default_engine
from ..engine import Engine
from ..errors import InvalidArgument, InvalidType, Unavailable
from ..linalg.arrays import check_type
from ..machine import Machine
from ..registered import settle
from ..typing import ArrayLike, MatrixLike, PreconditionerLike
from .column_groups import multiply_in_groups, solve_in_groups
from .distributed import Distributed, End, Storage
from .known_orders import known_orders
from .matrices import Csr, common_type, on_host
from .options import EXCHANGES, FORMATS, METHODS, ROUTES, SPLITS, number_of, refuse_whole, tolerance
from .ordering import (
    Ordering,
    by_partition,
    lost_seconds,
    reverse_cuthill_mckee,
    seconds_to_order,
)
from .overlap import counted, overlap_reached, with_slowest
from .preconditioners import Aggregation, preconditioner_of
from .refinement import Refined
from .result import Result
from .row_blocks import RowBlocks, as_rows

NDArray = npt.NDArray[Any]
_ORDERS = {"rcm": reverse_cuthill_mckee, "metis": by_partition}
OrderingOf = Callable[[Csr, int], Ordering]
_MOST = 2**62
#: As many as a solver is taken to make, where nobody says: some hundred iterations of some solves.
_PRODUCTS = 1000


def engine_for(engine: Engine | None, devices: str | Machine | None) -> Engine:
    """Where a call runs."""
    if engine is not None and devices is not None:
        raise InvalidArgument("give an engine or devices, not both")
    if engine is not None and not isinstance(engine, Engine):
        raise InvalidType(f"engine is {engine!r}; expected an Engine, or None")
    return engine or (Engine(devices) if devices is not None else default_engine())


class Solver:
    """A sparse hermitian positive definite matrix on the devices, for many solves and products.

    Parameters
    ----------
    A : sparse array, matrix, array_like, path or `RowBlocks`
        Of shape (n, n); see `quadriga.sparse`. It is copied in parts: later changes to it have no
        effect.
    method : {"cg", "classic_cg", "single_reduction_cg", "pipelined_cg"}
        How iterations of conjugate gradients are arranged. Classic ones (Hestenes and Stiefel) form
        two sums over all devices, one after the other; single-reduction ones (Chronopoulos and
        Gear) one, for two vectors more; pipelined ones (Ghysels and Vanroose) one, while the
        product runs, for six vectors more. The latter two compute their residuals anew from time to
        time, and need an `M` of blocks of rows. ``"cg"`` chooses the shortest by the
        machine's description of one device (``plan["method_reason"]``).
        Bits are those of one device of the kind; each method has its own rounding. What a device's
        memory can't hold counts, so that under another ``memory=`` limit ``"cg"`` may be another.
    fast : bool, default: False
        Whether ``"cg"`` chooses the shortest on the devices that get rows, whose sums wait for each
        other, so that the number of devices decides the bits of results.
    M : str, array_like, `Aggregation` or hierarchy, optional
        The preconditioner, which approximates the inverse of A: the inverse of A's diagonal, the
        inverses of its diagonal blocks, a polynomial, a cycle through levels, or a diagonal of
        shape (n,), also as ``scipy.sparse.diags_array(d)``. Blocks have the rows of the format's
        dense blocks, else 4, 3 or 2, whichever first divides n; ``("block_jacobi", rows)`` chooses.
        The polynomial is Chebyshev's of degree 4, or of ``("chebyshev", degree)``, of A scaled by
        its diagonal, between eigenvalues that 20 iterations on the devices estimate:
        ``plan["eigenvalues"]``.
        Levels are made by smoothed aggregation, as an `Aggregation` says in detail, or are those of
        a hierarchy of pyamg's: ``plan["levels"]``.
    format : {"auto", "csr", "sell", "blocks"}
        How devices store rows. ``"blocks"`` are dense ones of 2 x 2, 3 x 3 or 4 x 4 elements, as
        several unknowns per node make them; elements that a block lacks are stored as zeros.
        ``"auto"`` is ``"blocks"`` if that takes the fewest bytes and stores at most 1.25 values per
        element; else ``"sell"`` on GPUs, and elsewhere if it stores no more; else ``"csr"``.
    parts : int, optional
        Parts of rows. Default: one per device or core, more if a device's memory requires it.
    order : {None, "rcm", "metis", "auto"}
        ``"rcm"`` reorders rows and columns by reverse Cuthill-McKee, so that parts exchange less,
        and undoes this in results. It needs SciPy and some seconds for ten million elements, and
        pays if the natural order has a large ``plan["halo_rows"]``. ``"metis"`` orders rows by a
        partition of METIS's, whose parts exchange still less; it takes several times as long and
        needs METIS's library. Neither depends on the number of devices. An order is kept for
        later solvers of the same pattern, whatever its values; ``plan["order_seconds"]`` is what
        finding it took. ``"auto"`` is ``"rcm"``
        where the machine's description predicts that a thousand products save more time than it
        takes, as ``plan["ordered"]`` says; that may depend on the number of devices, and with it
        the rounding of results.
    recorded : bool, optional
        Whether several iterations run as one task per device, on GPUs as one graph that is
        recorded once and launched repeatedly; results are bitwise identical. It requires one part
        per device and, on several devices, peer access between GPUs, no ``route="host"`` and an
        `M` of blocks of rows. Default: where that is so, except on several emulated devices. Those
        of one right-hand side are recorded here: ``plan["recording_seconds"]`` is what that takes,
        with the matrix's way to the devices.
    exchange : {"auto", "halo", "whole"}
        What parts send to each other before a product: the elements that the receiver needs (the
        default), or all. Results are bitwise identical.
    route : {"auto", "direct", "host"}
        How it travels: by the machine's route between two devices, which leads by way of the host
        where there is no other, or always by way of a copy on the host. Results are bitwise
        identical.
    split : {"rows", "columns"}
        What a part multiplies before others' elements are here. ``"rows"``: rows that need none,
        which pays where most rows don't. ``"columns"``: all rows, but only by elements in the
        part's own columns; those in each other part's columns follow as its elements arrive, and
        are added in the order of parts. That pays where nearly all rows need others' elements. Its
        bits are the same again for the same parts, but differ between numbers of devices; `M` is
        then none or blocks of rows, and iterations on several devices aren't recorded.
    overlap : bool, optional
        Whether what needs nothing of other parts is multiplied while the others' elements
        travel. Default: on devices with their own memory, unless the machine's description
        predicts a loss. Results are bitwise identical.
    precision : {None, "mixed"}
        ``"mixed"``: iterations run in single precision on a second copy of the matrix, and compute
        corrections until the residual in double meets the tolerance. If single precision isn't
        enough, the solve continues in double and a `LinAlgWarning` says why.
    spill : path, optional
        A file that holds the stored parts on the host, instead of memory: for matrices bigger than
        that. It must not exist yet, and is removed in the end.
    dtype : dtype, optional
        Type to compute in. Default: that of `A`.
    engine, devices
        See `quadriga.sparse`.

    Raises
    ------
    InvalidArgument
        If `A` isn't square, its offsets descend, a column is out of range, or the diagonal of `M`
        has a zero or isn't finite; the message names the row. If `recorded` is True where that
        can't be. If `format` is ``"blocks"`` and n no multiple of 2 or 3.
    TooLarge
        If a part and its vectors don't fit together on any device.
    Unavailable
        If `order` needs a library that isn't installed.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import sparse
    >>> solver = sparse.Solver(sparse.poisson((20, 20)), M="jacobi", devices="emulated:2")
    >>> result = solver.solve(np.ones(400), rtol=1e-8)
    >>> result.reason
    'converged'
    >>> bool(np.allclose(solver @ result.x, 1, atol=1e-6))
    True
    """

    #: Whether other solves follow the first: then it finds its iterations recorded.
    _solves_again = True

    __array_ufunc__ = None  # so that array @ solver is refused, and isn't tried by elements

    @mapped.checks()
    def __init__(
        self,
        A: MatrixLike | RowBlocks,
        method: str = "cg",
        M: PreconditionerLike | Aggregation | None = None,
        *,
        fast: bool = False,
        format: str = "auto",
        parts: int | None = None,
        order: str | None = None,
        recorded: bool | None = None,
        exchange: str = "auto",
        route: str = "auto",
        split: str = "rows",
        overlap: bool | None = None,
        precision: str | None = None,
        spill: str | os.PathLike[str] | None = None,
        dtype: npt.DTypeLike | None = None,
        engine: Engine | None = None,
        devices: str | Machine | None = None,
    ) -> None:
        arranged = number_of("method", method, METHODS)
        layout = number_of("format", format, FORMATS)
        ways = number_of("exchange", exchange, EXCHANGES), number_of("route", route, ROUTES)
        divided = number_of("split", split, SPLITS)
        if order not in (None, "auto", *_ORDERS):
            raise InvalidArgument(f"order is {order!r}; expected 'rcm', 'metis', 'auto', or None")
        if precision not in (None, "mixed"):
            raise InvalidArgument(f"precision is {precision!r}; expected 'mixed' or None")
        if precision is not None and arranged > METHODS["classic_cg"]:
            raise InvalidArgument(
                f"precision is {precision!r} and method {method!r}; corrections in single "
                "precision are classic: expected 'classic_cg' or 'cg'"
            )
        matrix = as_rows(A, None if dtype is None else common_type(np.dtype(dtype)))
        given = preconditioner_of(M, matrix)
        self._diagonal = given.diagonal
        self._order: Ordering | None = None
        self._order_seconds = 0.0
        wanted = 0 if parts is None else whole("parts", parts, 1, 2**16)
        for name, value in (("recorded", recorded), ("overlap", overlap)):
            if value is not None and not isinstance(value, bool):
                raise InvalidType(f"{name} is {value!r}; expected True, False, or None")
        if not isinstance(fast, bool):
            raise InvalidType(f"fast is {fast!r}; expected True or False")
        file = "" if spill is None else os.fspath(spill)
        ahead = self._solves_again and precision is None
        storage = Storage(
            layout, given, wanted, recorded, *ways, overlap, file, arranged, fast, ahead, divided
        )
        #: Where it is.
        self.engine = engine_for(engine, devices)
        #: Of the matrix, (n, n).
        self.shape = matrix.shape
        #: What it computes in.
        self.dtype = matrix.dtype
        self._refined: Refined | None = None
        if isinstance(matrix, RowBlocks):
            refuse_whole(order=order, precision=precision)
            self._store(matrix, storage)
            return
        if order not in _ORDERS:
            self._store(matrix, storage)
        # The levels of a given hierarchy have A's own order.
        if order in _ORDERS:
            matrix, storage = self._reorder(matrix, storage, _ORDERS[order], False)
        elif order == "auto" and not given.levels and self._may_gain(matrix):
            matrix, storage = self._reorder(matrix, storage, reverse_cuthill_mckee, True)
        if precision is not None:
            diagonal = storage.precondition.diagonal
            self._refined = Refined(self.engine, self._parts, matrix, diagonal, storage)

    def _store(self, matrix: Csr | RowBlocks, storage: Storage) -> None:
        self._parts = Distributed(self.engine, matrix, storage.precondition.diagonal, storage)

    def _may_gain(self, matrix: Csr) -> bool:
        """Whether products should save, at best, more than ordering and storing it again takes."""
        lost = lost_seconds(self.plan) * _PRODUCTS
        return lost > 0 and lost > seconds_to_order(matrix, self.engine.machine)

    def _reorder(
        self, matrix: Csr, storage: Storage, ordering: OrderingOf, if_shorter: bool
    ) -> tuple[Csr, Storage]:
        """Stores it in another order, unless that must be, and isn't, shorter; what is stored."""
        given = storage.precondition
        begin = time.perf_counter()
        order = known_orders.order(ordering, matrix, given.unknowns)
        self._order_seconds = time.perf_counter() - begin
        ordered = order.matrix(matrix), replace(storage, precondition=given.ordered(order.forth))
        before = self._parts if if_shorter else None
        self._store(*ordered)
        if before is not None and lost_seconds(before.plan()) <= lost_seconds(self.plan):
            self._parts = before
            return matrix, storage
        self._order = order
        return ordered

    @mapped.checks()
    def update(self, A: MatrixLike | RowBlocks, M: ArrayLike | None = None) -> None:
        """Take new values of `A`, whose elements are at the same positions as before.

        Parameters
        ----------
        A : as of the constructor
        M : array_like, optional
            A new diagonal, if the preconditioner is one; default: the previous one. Others follow
            `A`: aggregates stay, and their levels get new values. A given hierarchy stays.

        Raises
        ------
        InvalidArgument
            If elements are elsewhere, or the diagonal of `M` is invalid; nothing has changed then.
        """
        matrix = as_rows(A, self.dtype)
        if matrix.shape != self.shape:
            raise InvalidArgument(f"A has shape {matrix.shape}; expected {self.shape}")
        if M is not None:
            if self._diagonal is None:
                raise InvalidArgument("M is given; this solver's preconditioner is no diagonal")
            self._diagonal = preconditioner_of(M, matrix).diagonal
        diagonal = self._diagonal
        if isinstance(matrix, RowBlocks):
            order = None if self._order is None else "in use"
            refuse_whole(order=order, precision=None if self._refined is None else "mixed")
            self._parts.update(matrix, diagonal)
            return
        if self._order is not None:
            matrix = self._order.matrix(matrix)
            diagonal = None if diagonal is None else self._order.forth(diagonal)
        self._parts.update(matrix, diagonal)
        if self._refined is not None:
            self._refined.update(matrix, diagonal)

    @property
    def plan(self) -> dict[str, Any]:
        """How rows are partitioned: ``first_rows``, ``devices``, ``halo_rows`` and others, by part.

        If the machine's description has rates, ``models`` predict for each part how long a product
        takes: ``compute_seconds`` and ``exchange_seconds``, their sum ``in_turn_seconds`` and their
        maximum ``overlapped_seconds``, and ``largest_gain``, the fraction that overlap can save.
        """
        order = {"ordered": self._order is not None, "order_seconds": self._order_seconds}
        plan = self._parts.plan()
        return plan | order | {"method": f"{plan['method']}_cg"}

    @mapped.checks()
    def solve(
        self,
        b: ArrayLike,
        x0: ArrayLike | None = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        callback: Callable[[NDArray], object] | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Result:
        """Solve ``A @ x = b``.

        Parameters
        ----------
        b : array_like
            Of shape (n,), or (n, k) for k right-hand sides, which share each product. Where all of
            them don't fit the devices at once, they are solved in groups, with the same results.
        x0 : array_like, optional
            The initial guess, of the shape of `b`. Default: zeros.
        rtol, atol : float
            The tolerance: ``norm(b - A @ x) <= max(rtol * norm(b), atol)``, by columns.
        maxiter : int, optional
            Default: ``10 * n``.
        callback : callable, optional
            Called as ``callback(x)`` after each iteration. Each call copies x to the host while
            the devices wait.
        progress : callable, optional
            Called with the number of iterations, a few times a second. Devices don't wait for it.

        Raises
        ------
        InvalidArgument
            If shapes or types aren't accepted. Numerical failures are the result's reason instead.
        """
        right = self._vectors(b, "b")
        x = np.zeros_like(right) if x0 is None else self._vectors(x0, "x0").copy()
        if x.shape != right.shape:
            raise InvalidArgument(f"x0 has shape {x.shape}; expected that of b, {right.shape}")
        limit = -1 if maxiter is None else whole("maxiter", maxiter, 0, _MOST)
        end = End(tolerance("rtol", rtol), tolerance("atol", atol), limit)
        watch = None if callback is None else lambda x: callback(self._back(x))
        plan = self.plan
        before = counted(self.engine, plan)
        with self.engine.section("cg"):

            def iterate(b: NDArray, x: NDArray) -> dict[str, Any]:
                if self._refined is not None and right.size > 0:
                    return self._refined.solve(b, x, end, watch, progress)
                return self._parts.iterate(b, x, end, x0 is None, watch, progress)

            # Groups of columns are at different iterations: a callback needs all at once.
            found = iterate(right, x) if watch else solve_in_groups(iterate, right, x)
            overlap = overlap_reached(before, counted(self.engine, plan)) if before else None
            return self._result(self._back(x), found, plan, overlap)

    def estimate(self) -> list[dict[str, Any]]:
        """Predict a product for each way to exchange, by the rates of the machine's description.

        Returns
        -------
        list of dict
            ``exchange`` and ``route``, as of the constructor; ``parts``, as ``plan["models"]``;
            ``in_turn_seconds`` and ``overlapped_seconds`` of the slowest part;
            ``reachable_seconds``, where what needs the halo is multiplied behind it, as `split`
            says; and ``largest_gain``, the fraction that overlap can save.

        Raises
        ------
        Unavailable
            If the description has no rates ``flops`` and ``bytes`` for a device.
        """
        ways: list[dict[str, Any]] = self.plan["estimates"]
        if not ways:
            raise Unavailable(
                "the machine's description has no rates 'flops' and 'bytes' for these devices; "
                "devices='machine=FILE' reads one that has"
            )
        return [with_slowest(way) for way in ways]

    def measure_overlap(self, count: int = 20) -> dict[str, float]:
        """Measure what `estimate` predicts, for the way to exchange that this solver uses.

        Each time is the mean of `count` products of vectors that stay on the devices.

        Returns
        -------
        dict
            ``compute_seconds`` without exchange, ``in_turn_seconds``, ``overlapped_seconds``;
            ``exchange_seconds``, the difference of the first two; ``largest_gain``, the smaller of
            computing and exchange by their sum; and ``gain``, the fraction that overlap saves.
        """
        made = whole("count", count, 1, _MOST)
        with self.engine.section("sparse measurement"):
            compute, in_turn, overlapped = (
                self._parts.measure_product(made, mode=mode) for mode in (1, 2, 3)
            )
        exchange = max(0.0, in_turn - compute)
        return {
            "compute_seconds": compute,
            "exchange_seconds": exchange,
            "in_turn_seconds": in_turn,
            "overlapped_seconds": overlapped,
            "largest_gain": min(compute, exchange) / (compute + exchange) if in_turn > 0 else 0.0,
            "gain": 1 - overlapped / in_turn if in_turn > 0 else 0.0,
        }

    def measure_product(self, count: int = 100, columns: int = 1) -> float:
        """Seconds of one of `count` products of vectors that stay on the devices.

        What parts need of each other is exchanged before each product.
        """
        made = whole("count", count, 1, _MOST)
        with self.engine.section("sparse measurement"):
            return self._parts.measure_product(made, whole("columns", columns, 1, 2**16))

    @mapped.checks()
    def __matmul__(self, x: ArrayLike) -> NDArray:
        """The product with a vector of shape (n,), or with k of them, of shape (n, k)."""
        return self._back(multiply_in_groups(self._parts.multiply, self._vectors(x, "x")))

    def matvec(self, x: ArrayLike) -> NDArray:
        """The same; ``scipy.sparse.linalg.aslinearoperator`` takes a solver for its matrix."""
        return self.__matmul__(x)

    matmat = rmatvec = rmatmat = matvec  # the matrix is hermitian

    def _back(self, vectors: NDArray) -> NDArray:
        return vectors if self._order is None else self._order.back(vectors)

    def __repr__(self) -> str:
        return f"<Solver of order {self.shape[0]}, {self.dtype}, cg>"

    def _vectors(self, value: Any, name: str) -> NDArray:
        """An array of the solver's type, row by row."""
        array = np.asarray(on_host(value))
        settle(array)
        check_type(array.dtype, name)
        if array.ndim not in (1, 2) or array.shape[0] != self.shape[0]:
            n = self.shape[0]
            raise InvalidArgument(f"{name} has shape {array.shape}; expected ({n},) or ({n}, k)")
        if array.dtype.kind == "c" and self.dtype.kind != "c":
            raise InvalidType(
                f"{name} is {array.dtype}, and the solver computes in {self.dtype}; "
                "make it with dtype=complex"
            )
        ordered = array if self._order is None else self._order.forth(array)
        return np.ascontiguousarray(ordered, self.dtype)

    def _result(
        self, x: NDArray, found: dict[str, Any], plan: dict[str, Any], overlap: float | None
    ) -> Result:
        many = x.ndim == 2
        residuals = np.asarray(found["residuals"], float)

        def each(name: str) -> Any:
            return np.asarray(found[name], float) if many else found[name][0]

        return Result(
            x=x,
            reason=found["reason"],
            iterations=found["iterations"],
            residual=each("true_residuals"),
            tolerance=each("tolerances"),
            condition=each("conditions"),
            residuals=residuals.reshape(-1, max(1, x.shape[1])) if many else residuals,
            seconds=found["seconds"],
            setup_seconds=plan["seconds"],
            overlap=overlap,
            precision=found.get("precision", str(self.dtype)),
            method=f"{found.get('method', 'classic')}_cg",
            replacements=found.get("replacements", 0),
        )


class SingleUse(Solver):
    """One that is made for a single solve, or for products: it records nothing ahead."""

    _solves_again = False
