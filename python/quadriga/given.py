# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/given.py: results of tasks among what later tasks are called with.
"""Results of tasks as arguments of later ones, which are submitted before the results exist."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from . import _core
from .codelets import Codelet
from .errors import Cancelled, InvalidArgument, InvalidType
from .parameters import DEEPEST, FROZEN, Made, frozen_value, held_by, own_copy, rebuilt
from .registered import ContentLost

_taking = threading.RLock()  # an array's class may have a copy() that takes results
NOT_YET = object()  # nobody has asked for the result


class Result:
    """What a body returned, kept while a future or a later task can read it.

    The program may change what it got, so that it and later tasks never have the same array: who
    comes second gets a copy.
    """

    __slots__ = ("__weakref__", "_is_given", "_shown", "value")

    def __init__(self) -> None:
        self.value: Any = None
        # Both are guarded by _taking.
        self._is_given = False
        self._shown: Any = NOT_YET  # what the program got

    def for_program(self) -> Any:
        """The value, once it is there: the same object in each call."""
        with _taking:
            if self._shown is NOT_YET:
                self._shown = own_copy(self.value) if self._is_given else self.value
            return self._shown

    def for_task(self) -> Result:
        """What a later task is submitted with."""
        with _taking:
            if self._shown is not self.value:
                self._is_given = True
                return self
        copy = Result()
        copy.value = frozen_value(self.value)  # may wait for tasks, whose bodies take results
        return copy


class Producer(Protocol):
    """A task whose result others read."""

    @property
    def submitted(self) -> _core.Future: ...

    @property
    def id(self) -> int: ...


class Promised:
    """Base of `Future`: it stands for a task's result."""

    __slots__ = ("_record", "_result", "_tasks")

    _record: Producer
    _result: Result
    _tasks: Any


class Given:
    """The futures among a task's operands and parameters. Holds their results, not the futures,
    which hold their engine.
    """

    __slots__ = ("_among", "_core", "_parameters", "producers")

    def __init__(
        self, codelet: Codelet, operands: Sequence[Any], parameters: Mapping[str, Any]
    ) -> None:
        if len(operands) != len(codelet.access):
            raise InvalidArgument(
                f"codelet '{codelet.name}' takes {len(codelet.access)} "
                f"operand{'' if len(codelet.access) == 1 else 's'}, got {len(operands)}"
            )
        self.producers: list[Producer] = []
        self._core: _core.Engine | None = None
        #: By their places among all operands.
        self._among: dict[int, Result] = {}
        for index, operand in enumerate(operands):
            if isinstance(operand, Promised):
                _check_mode(codelet, index)
                self._among[index] = self._take(operand)
        made: Made = {}
        self._parameters = {n: self._taken(each, 0, made) for n, each in parameters.items()}

    def check_engine(self, core: _core.Engine) -> None:
        """Refuses futures of engines other than this one."""
        if self._core is not core:
            raise InvalidArgument(
                "a Future of another engine was given to a task; give its result() instead"
            )

    @property
    def after(self) -> list[_core.Future]:
        """The tasks that have to end first."""
        return [each.submitted for each in self.producers]

    @property
    def places(self) -> tuple[int, ...]:
        """Which operands are results."""
        return tuple(self._among)

    def lacking(self) -> int | None:
        """The first of them that failed, once all have ended; None if all are there."""
        assert self._core is not None
        for producer in self.producers:
            if self._core.failed(producer.submitted):
                return producer.id
        return None

    def operands(self, views: list[Any]) -> list[Any]:
        """All operands of the body, from those that lie in tiles."""
        for index, result in self._among.items():
            views.insert(index, _to_read(result.value, 0, {}))
        return views

    def parameters(self) -> dict[str, Any]:
        """All parameters of the body."""
        made: Made = {}
        return {name: _filled(each, 0, made) for name, each in self._parameters.items()}

    def _take(self, future: Promised) -> Result:
        if self._core not in (None, future._tasks.core):
            raise InvalidArgument("Futures of two engines were given to one task")
        self._core = future._tasks.core
        self.producers.append(future._record)
        return future._result.for_task()

    def _taken(self, value: Any, depth: int, made: Made) -> Any:
        if isinstance(value, Promised):
            return self._take(value)
        return rebuilt(value, depth, self._taken, made)


class Lacking(Given):
    """Of a task whose parameters lack what a failed task should have written: it can't run."""

    __slots__ = ("_lost", "_places")

    def __init__(self, codelet: Codelet, operands: Sequence[Any], lost: ContentLost) -> None:
        self.producers = []
        self._lost = lost
        self._places = tuple(i for i, each in enumerate(operands) if isinstance(each, Promised))
        for index in self._places:
            _check_mode(codelet, index)

    def check_engine(self, core: _core.Engine) -> None:
        """Takes note of the engine: the failed task may be another's."""
        self._core = core

    @property
    def places(self) -> tuple[int, ...]:
        """Which operands are results."""
        return self._places

    def lacking(self) -> int | None:
        """The task that failed; raises `Cancelled` for one of another engine."""
        if self._lost.core is not self._core:
            raise Cancelled(f"a parameter has no content: {self._lost}")
        return self._lost.task


def holds_futures(parameters: Mapping[str, Any]) -> bool:
    """Whether a task's parameters are futures, or lists, tuples and dictionaries of them."""
    return _holds(parameters.values(), 0, set())


def _holds(values: Iterable[Any], depth: int, seen: set[tuple[int, int]]) -> bool:
    for each in values:
        if isinstance(each, Promised):
            return True
        held = held_by(each) if depth < DEEPEST else None
        if held is None or (id(each), depth) in seen:
            continue
        seen.add((id(each), depth))
        if _holds(held, depth + 1, seen):
            return True
    return False


def _filled(value: Any, depth: int, made: Made) -> Any:
    if isinstance(value, Result):
        return _to_read(value.value, 0, {})
    return rebuilt(value, depth, _filled, made)


def _to_read(value: Any, depth: int, made: Made) -> Any:
    """A result for one of several readers, none of which may change it for the others."""
    if not isinstance(value, np.ndarray):
        if type(value) in FROZEN:
            return FROZEN[type(value)](value)
        return rebuilt(value, depth, _to_read, made)
    view = value.view()
    view.flags.writeable = False
    if isinstance(view, np.ma.MaskedArray):
        view.unshare_mask()  # which is another array
    return view


def _check_mode(codelet: Codelet, index: int) -> None:
    mode = codelet.access[index] if index < len(codelet.access) else "read"
    if mode != "read":
        raise InvalidType(
            f"operand {index} of codelet '{codelet.name}' is a Future, which can only be read; "
            f"its mode is {mode}"
        )
