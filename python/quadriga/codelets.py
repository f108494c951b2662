# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/codelets.py: operations in Python, their variants, operands and running tasks.
"""Codelets in Python: a function of NumPy views, what stands for it on GPUs, and how both touch
their operands.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from .blas import one_thread
from .cuda_source import CudaSource
from .device_arrays import DeviceArrays, library
from .errors import InvalidArgument, InvalidType

if TYPE_CHECKING:
    from .data import Data, Place

ACCESSES: dict[str, _core.Access] = {
    "read": _core.Access.read,
    "write": _core.Access.write,
    "update": _core.Access.update,
    "commute": _core.Access.commute,
    "reduce": _core.Access.reduce,
}


class Cost(NamedTuple):
    """How long a task takes by a machine's table, for the virtual clock.

    The rate order**3/seconds is interpolated at `order`; the task takes volume/rate.
    """

    kernel: str
    order: float
    volume: float


class Operand(NamedTuple):
    """Data, and how a task touches it; made by `Data.read()` and its like."""

    data: Data
    access: str


class Codelet:
    """An operation with a variant for the host, one for CUDA devices, or both; as by `codelet`.

    Attributes
    ----------
    name : str
        As it stands in traces and errors.
    access : tuple of str
        One mode for each operand.
    body : callable or None
        The function; gets one NumPy view for each operand. None: it runs on CUDA devices only.
    cuda : CudaSource or callable or None
        What runs on CUDA devices.
    """

    def __init__(
        self,
        body: Callable[..., Any] | None,
        access: Sequence[str],
        *,
        name: str | None = None,
        host_only: bool = True,
        submits: bool = False,
        cost: Cost | None = None,
        cuda: CudaSource | Callable[..., Any] | None = None,
        arrays: str | None = None,
    ) -> None:
        listed = isinstance(access, Iterable) and not isinstance(access, str)
        if not listed or any(mode not in list(ACCESSES) for mode in access):
            raise InvalidArgument(
                f"access {access!r}: expected a list of modes, each one of {', '.join(ACCESSES)}"
            )
        if body is not None and not callable(body):
            raise InvalidType(f"body is {body!r}; expected a function of arrays")
        if name is not None and not isinstance(name, str):
            raise InvalidType(f"name is {name!r}; expected a str")
        if cost is not None and not isinstance(cost, Cost):
            raise InvalidType(f"cost is {cost!r}; expected a quadriga.Cost")
        self.body = body
        self.access = tuple(access)
        self.cuda = body if cuda is None and arrays is not None else cuda
        self.arrays: DeviceArrays | None = library(arrays) if arrays is not None else None
        variant = self._variant()
        named = (body, getattr(cuda, "kernel", None), getattr(cuda, "__name__", None), "codelet")
        self.name = name or next(str(getattr(each, "__name__", each)) for each in named if each)
        if submits and self.cuda is not None:
            raise InvalidArgument(f"codelet '{self.name}': only bodies on the host submit tasks")
        charged = (cost.kernel, cost.order, cost.volume) if cost else None
        self.core = _core.Codelet(
            self.name,
            [ACCESSES[mode] for mode in access],
            host_only,
            submits,
            charged,
            has_body=body is not None,
            cuda=variant,
        )

    def _variant(self) -> _core.CudaVariant:
        """The kind of the CUDA variant; raises if the arguments make none."""
        if isinstance(self.cuda, CudaSource):
            if self.arrays is not None:
                raise InvalidArgument("arrays= is for callables; a CUDA source gets tiles")
            return _core.CudaVariant.source
        if callable(self.cuda):
            if self.arrays is None:
                raise InvalidArgument("a callable for CUDA devices needs arrays='cupy' or 'torch'")
            return _core.CudaVariant.callable
        if self.cuda is not None:
            raise InvalidType(f"cuda is {self.cuda!r}; expected a CudaSource or a callable")
        if self.body is None:
            raise InvalidArgument("a codelet without a body needs cuda=")
        return _core.CudaVariant.none

    def __repr__(self) -> str:
        return f"<Codelet {self.name!r}({', '.join(self.access)})>"


def codelet(
    access: Sequence[str],
    *,
    name: str | None = None,
    host_only: bool = True,
    submits: bool = False,
    cost: Cost | None = None,
    cuda: CudaSource | Callable[..., Any] | None = None,
    arrays: str | None = None,
) -> Callable[[Callable[..., Any]], Codelet]:
    """Make a codelet of a function on NumPy arrays, and of what does the same on CUDA devices.

    Parameters
    ----------
    access : sequence of str
        How the function touches each operand: ``"read"``, ``"write"``, ``"update"`` (read and
        write), ``"commute"`` (an update whose order doesn't matter) or ``"reduce"``.
    name : str, optional
        As it stands in traces; the function's name by default.
    host_only : bool
        Whether the function runs on the host's cores only. False: on emulated devices, too.
    submits : bool
        Whether the body submits tasks itself.
    cost : Cost, optional
        Its time by the machine's table; the virtual clock needs it. None: learned by running some
        tasks on each kind of device.
    cuda : CudaSource or callable, optional
        What runs on CUDA devices. A callable gets arrays of the library `arrays`, made over the
        operands where they lie, while that library's current stream is the task's.
    arrays : {"cupy", "torch"}, optional
        What a callable for CUDA devices gets. Without `cuda` the function itself is called with it.

    Returns
    -------
    callable
        A decorator that makes a `Codelet`.

    Notes
    -----
    Views are valid while the body runs; those of mode read can't be written. NumPy's and SciPy's
    BLAS run on one thread meanwhile, in the whole process. What the body raises comes back from
    `Engine.wait` and `Future.result` with its type and traceback.

    A callable on CUDA devices returns once it has queued its work on the current stream; the task
    ends when that work has. Its arrays are gone then, also if something still refers to them, and
    nothing keeps it from writing those of mode read. One such callable runs at a time.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> @quadriga.codelet(access=["read", "update"])
    ... def add(x, y):
    ...     y += x
    >>> with quadriga.Engine("cpu:1") as engine:
    ...     x, y = np.arange(3.0), np.ones(3)
    ...     _ = engine.submit(add, engine.data(x).read(), engine.data(y).update())
    ...     engine.wait()
    >>> y
    array([1., 2., 3.])
    """
    return lambda body: Codelet(
        body,
        access,
        name=name,
        host_only=host_only,
        submits=submits,
        cost=cost,
        cuda=cuda,
        arrays=arrays,
    )


class Record:
    """A task from its submission to its end; keeps alive what its body needs."""

    __slots__ = (
        "codelet",
        "core",
        "exception",
        "launch",
        "number",
        "operands",
        "parameters",
        "value",
    )

    def __init__(
        self,
        number: int,
        codelet: Codelet,
        operands: Sequence[Operand],
        parameters: Mapping[str, Any],
    ) -> None:
        if not isinstance(codelet, Codelet):
            raise InvalidType(
                f"codelet is {codelet!r}; expected a Codelet, as quadriga.codelet(access=...) "
                "makes of a function"
            )
        for index, operand in enumerate(operands):
            if not isinstance(operand, Operand):
                raise InvalidType(
                    f"operand {index} of codelet '{codelet.name}' is {type(operand).__name__}; "
                    "expected data and how it is touched, as engine.data(array).read() or .update()"
                )
        self.number = number
        self.codelet = codelet
        # Not the data themselves, for those hold the engine, which holds this.
        self.operands: Sequence[tuple[Place, str]] = [(o.data.place, o.access) for o in operands]
        self.parameters = parameters
        self.core: _core.Future | None = None
        self.launch: _core.LaunchPlan | None = None
        self.value: Any = None
        self.exception: BaseException | None = None

    def prepare_for_cuda(self) -> None:
        """What needs Python, or fails, before an engine with CUDA devices gets the task."""
        codelet = self.codelet
        if isinstance(codelet.cuda, CudaSource):
            layouts = [place.layout for place, _ in self.operands]
            self.launch = codelet.cuda.plan(codelet.name, layouts, codelet.access, self.parameters)
        elif codelet.arrays is not None:
            _ = codelet.arrays.module

    def run(self, places: tuple[tuple[int, int], ...]) -> None:
        """Call the body on the operands where they are; called by the engine."""
        body = self.codelet.body
        assert body is not None
        views = [
            place.view(address, ld, access)
            for (place, access), (address, ld) in zip(self.operands, places, strict=True)
        ]
        try:
            with one_thread:
                self.value = body(*views, **self.parameters)
        except BaseException as exception:
            self.exception = exception
            if any(
                place.array is None or address != place.array.ctypes.data
                for (place, _), (address, _) in zip(self.operands, places, strict=True)
            ):
                # Frames must not keep views of memory that the engine takes back.
                traceback.clear_frames(exception.__traceback__)
            raise

    def run_on_device(self, places: tuple[tuple[int, int], ...], stream: int, device: int) -> None:
        """Call the callable for CUDA devices, which queues on a stream; called by the engine."""
        function, arrays = self.codelet.cuda, self.codelet.arrays
        assert callable(function)
        assert arrays is not None
        try:
            with arrays.on_stream(stream, device):
                self.value = function(
                    *(
                        arrays.view(place.layout, address, ld, device)
                        for (place, _), (address, ld) in zip(self.operands, places, strict=True)
                    ),
                    **self.parameters,
                )
        except BaseException as exception:
            self.exception = exception
            # Frames must not keep arrays of memory that the engine takes back.
            traceback.clear_frames(exception.__traceback__)
            raise

    def drop(self) -> None:
        """The task has ended: let its operands go."""
        self.operands = ()
        self.parameters = {}
        self.launch = None
