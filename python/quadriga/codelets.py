# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/codelets.py: operations in Python, and their variants.
"""Codelets in Python: a function of NumPy views, its variant for GPUs, and how both access their
operands.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from . import _core
from .arguments import either
from .completion import hides
from .cuda_source import CudaSource
from .device_arrays import DeviceArrays, library
from .errors import InvalidArgument, InvalidType

ACCESSES: dict[str, _core.Access] = {
    "read": _core.Access.read,
    "write": _core.Access.write,
    "update": _core.Access.update,
    "commute": _core.Access.commute,
    "reduce": _core.Access.reduce,
}


class Cost(NamedTuple):
    """How long a task takes by a machine's table of kernel times, for the virtual clock.

    The table gives seconds by order; the rate order**3/seconds is interpolated at `order`, and the
    task takes volume/rate. For other tasks state the time (`of_seconds`) or the work (`of_work`).

    Attributes
    ----------
    kernel : str
        Name in the table, such as ``"dgemm"``.
    order, volume : float
        A square tile of order b has volume b**3, whatever the kernel.
    """

    kernel: str
    order: float
    volume: float

    @classmethod
    def of_seconds(cls, seconds: float) -> Cost:
        """Return the cost of a task that takes the same time on each device.

        Parameters
        ----------
        seconds : float
            Not negative.
        """
        return cls("seconds", 0, _not_negative(seconds, "seconds"))

    @classmethod
    def of_work(cls, *, flops: float = 0, bytes: float = 0) -> Cost:
        """Return the cost of a task by what it computes and what it reads and writes.

        The task takes as long as its operations or its bytes, whichever is longer, by the rows
        ``flops`` and ``bytes`` of the machine's table (seconds of order**3 each). The time is
        known only if the table has both.

        Parameters
        ----------
        flops : float
            Floating-point operations.
        bytes : float
            Bytes of the device's memory, read and written.
        """
        return cls("work", _not_negative(bytes, "bytes"), _not_negative(flops, "flops"))


def _not_negative(value: float, name: str) -> float:
    if not isinstance(value, numbers.Real):
        raise InvalidType(f"{name} is {value!r}; expected a number")
    if not 0 <= value < math.inf:
        raise InvalidArgument(f"{name} is {value!r}; expected a finite number that isn't negative")
    return float(value)


#: Of functions of which a call only makes an object.
_NOT_RUN_BY_CALLS = (
    inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction,
)  # fmt: skip


def _name_of(function: Any) -> str:
    """Also of a `functools.partial`, which has the name of what it calls."""
    function = getattr(function, "func", function)
    return str(getattr(function, "__name__", function))


@hides("core", "core_without", "refuse_taken", "taken")
class Codelet:
    """An operation with a variant for the host, one for CUDA devices, or both.

    Parameters and errors are those of `codelet`, with the function first. Calling a codelet with
    arrays calls this function, whose name and documentation it takes over.

    Attributes
    ----------
    name : str
        Its name in traces and errors.
    access : tuple of str
        One mode for each operand.
    cpu : callable or None
        The function; gets one NumPy view per operand. None: the codelet runs on CUDA devices only.
    cuda : CudaSource or callable or None
        The variant for CUDA devices.
    divide : callable or None
        How a task divides into fine ones.
    """

    def __init__(
        self,
        cpu: Callable[..., Any] | None,
        access: Sequence[str],
        *,
        name: str | None = None,
        host_only: bool = True,
        submits: bool = False,
        cost: Cost | None = None,
        cuda: CudaSource | Callable[..., Any] | None = None,
        arrays: str | None = None,
        divide: Callable[..., None] | None = None,
    ) -> None:
        listed = isinstance(access, Iterable) and not isinstance(access, str)
        if not listed or any(mode not in list(ACCESSES) for mode in access):
            raise InvalidArgument(
                f"access {access!r}: expected a list of modes, each one of {', '.join(ACCESSES)}"
            )
        if any(is_other(cpu) for is_other in _NOT_RUN_BY_CALLS):
            raise InvalidType(
                f"codelet '{_name_of(cpu)}' is a generator or a coroutine, whose body doesn't run "
                "when it is called; expected a function"
            )
        if cpu is not None and not callable(cpu):
            raise InvalidType(f"cpu is {cpu!r}; expected a function of arrays")
        if name is not None and not isinstance(name, str):
            raise InvalidType(f"name is {name!r}; expected a str")
        if cost is not None and not isinstance(cost, Cost):
            raise InvalidType(f"cost is {cost!r}; expected a quadriga.Cost")
        if cpu is not None:
            functools.update_wrapper(self, cpu, updated=())
        self._options: dict[str, Any] = {
            "host_only": either("host_only", host_only), "submits": either("submits", submits),
            "cost": cost, "cuda": cuda,
            "arrays": arrays, "divide": divide,
        }  # fmt: skip
        self.cpu = cpu
        self.access = tuple(access)
        self.cuda = cpu if cuda is None and arrays is not None else cuda
        self.arrays: DeviceArrays | None = library(arrays) if arrays is not None else None
        self._variant_of_cuda = self._variant()
        named = (cpu, getattr(cuda, "kernel", None), getattr(cuda, "__name__", None), "codelet")
        self.name = name or next(_name_of(each) for each in named if each)
        try:
            self.name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InvalidArgument(
                f"name is {self.name!r}; expected text that UTF-8 can hold"
            ) from None
        if submits and self.cuda is not None:
            raise InvalidArgument(f"codelet '{self.name}': only bodies on the host submit tasks")
        if divide is not None and not callable(divide):
            raise InvalidType(f"divide is {divide!r}; expected a function that adds fine tasks")
        if divide is not None and (submits or cpu is None):
            raise InvalidArgument(
                f"codelet '{self.name}': only a task with a body that submits no tasks divides"
            )
        self.divide = divide
        self.core = self._made(self.access, self._variant_of_cuda, divide is not None)
        self._cores: dict[tuple[int, ...], _core.Codelet] = {}

    @functools.cached_property
    def taken(self) -> frozenset[str]:
        """Which of the names that `submit` takes for itself the function has parameters of."""
        try:
            found = inspect.signature(self.cpu).parameters.values() if self.cpu else []
        except (TypeError, ValueError):  # it has no signature
            return frozenset()
        named = [each.name for each in found if each.kind is each.KEYWORD_ONLY]
        if not any(each.kind is each.VAR_POSITIONAL for each in found):
            in_place = [each.name for each in found if each.kind is not each.KEYWORD_ONLY]
            named += in_place[len(self.access) :]
        return frozenset(named) & {"priority", "device"}

    def refuse_taken(self, **given: bool) -> None:
        """Raise `InvalidArgument` if the function wouldn't get what `submit` is given by a name."""
        for name in [each for each in self.taken if given[each]]:
            raise InvalidArgument(
                f"codelet '{self.name}' has a parameter '{name}', which submit() takes for itself: "
                "rename the parameter, or wrap the function"
            )

    def core_without(self, places: tuple[int, ...]) -> _core.Codelet:
        """The codelet without the operands at these places, which are results of other tasks.

        Raises
        ------
        InvalidArgument
            If there is only a CUDA source, whose values are set when a task is submitted.
        """
        if places not in self._cores:
            variant = self._variant_of_cuda
            if variant == _core.CudaVariant.source:
                variant = _core.CudaVariant.none
                if self.cpu is None:
                    raise InvalidArgument(
                        f"codelet '{self.name}' is a CUDA source alone, whose values are set when "
                        "a task is submitted: give it a body, or the result() of the Future"
                    )
            access = [mode for i, mode in enumerate(self.access) if i not in places]
            self._cores[places] = self._made(access, variant, divides=False)
        return self._cores[places]

    def _made(self, access: Sequence[str], cuda: _core.CudaVariant, divides: bool) -> _core.Codelet:
        cost = self._options["cost"]
        return _core.Codelet(
            self.name,
            [ACCESSES[mode] for mode in access],
            self._options["host_only"],
            self._options["submits"],
            (cost.kernel, cost.order, cost.volume) if cost else None,
            has_body=self.cpu is not None,
            cuda=cuda,
            divides=divides,
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
        if self.cpu is None:
            raise InvalidArgument("a codelet without a body needs cuda=")
        return _core.CudaVariant.none

    def __call__(self, *arrays: Any, **parameters: Any) -> Any:
        """Call the body on arrays, without an engine; raises `InvalidArgument` if it has none."""
        if self.cpu is None:
            raise InvalidArgument(
                f"codelet '{self.name}' has no body to be called; it runs on CUDA devices only"
            )
        return self.cpu(*arrays, **parameters)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name if its module has it under that name, as a decorated function; else by parts."""
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        name = getattr(self, "__qualname__", "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return _codelet_of, (self.cpu, self.access, {"name": self.name, **self._options})

    def __repr__(self) -> str:
        return f"<Codelet {self.name!r}({', '.join(self.access)})>"


def _codelet_of(
    cpu: Callable[..., Any] | None, access: Sequence[str], options: dict[str, Any]
) -> Codelet:
    return Codelet(cpu, access, **options)


def codelet(
    access: Sequence[str],
    *,
    name: str | None = None,
    host_only: bool = True,
    submits: bool = False,
    cost: Cost | None = None,
    cuda: CudaSource | Callable[..., Any] | None = None,
    arrays: str | None = None,
    divide: Callable[..., None] | None = None,
) -> Callable[[Callable[..., Any]], Codelet]:
    """Make a codelet of a function on NumPy arrays and, optionally, a variant for CUDA devices.

    Parameters
    ----------
    access : sequence of str
        How the function accesses each operand: ``"read"``, ``"write"``, ``"update"`` (read and
        write), ``"commute"`` or ``"reduce"`` (updates that may run in any order).
    name : str, optional
        Name in traces and errors. Default: the function's.
    host_only : bool
        Whether the function runs on the host's cores only. False: on emulated devices, too.
    submits : bool
        Whether the body submits tasks itself.
    cost : Cost, optional
        The time of a task by the machine's table; the virtual clock needs it. None: learned by
        running some tasks on each kind of device.
    cuda : CudaSource or callable, optional
        The variant for CUDA devices. A callable gets arrays of the library `arrays`, views of the
        operands, while that library's current stream is the task's.
    arrays : {"cupy", "torch"}, optional
        Library of the arrays that a callable for CUDA devices gets. Without `cuda` the function
        itself is that callable.
    divide : callable, optional
        How a task divides: gets a `Division`, then what the function gets, and adds fine tasks on
        slices of the operands. Where cores of an engine on cores alone are idle, these run in
        place of the function; what it returns is then None.

    Returns
    -------
    callable
        A decorator that makes a `Codelet` of a function, which gets one view for each operand, of
        the shape and type that was registered, then the task's parameters by name.

    Raises
    ------
    InvalidArgument
        If an argument isn't accepted; `InvalidType` if its type is wrong.

    Notes
    -----
    Views are valid while the body runs; those of mode read can't be written. Meanwhile NumPy's and
    SciPy's BLAS run on one thread, in the whole process. `Engine.wait` and `Future.result` raise
    what the body raised, with its type and traceback. Returned views of operands are copied; a
    result that refers to an operand indirectly, such as a generator, fails the task.

    A callable for CUDA devices returns once it has queued its work on the current stream; the task
    ends when that work has ended. From then on its arrays are invalid, even if references remain;
    those of mode read aren't write-protected. One such callable runs at a time.

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
    if callable(access):
        raise InvalidType(
            "codelet needs to know how the function accesses its operands: write "
            f"@codelet(access=[...]) above {getattr(access, '__name__', 'it')}"
        )
    return lambda cpu: Codelet(
        cpu,
        access,
        name=name,
        host_only=host_only,
        submits=submits,
        cost=cost,
        cuda=cuda,
        arrays=arrays,
        divide=divide,
    )
