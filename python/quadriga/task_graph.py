# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/task_graph.py: graphs that are given as functions of task indices.
"""Graphs that are never in memory as a whole: tasks are made as others end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .codelets import Codelet
from .data import Operand
from .engine import Engine
from .errors import InvalidArgument

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _TaskClass:
    codelet: Codelet
    operands: Callable[..., Iterable[Operand]]
    ranges: tuple[Callable[..., Iterable[int]], ...]
    priority: Callable[..., int] | None
    parameters: Callable[..., Mapping[str, Any]] | None

    def indices(self, *first: int) -> Iterator[tuple[int, ...]]:
        """All tuples that begin so, the last index fastest."""
        depth = len(first) - 1
        if depth == len(self.ranges):
            yield first
            return
        for index in _noted(self, first, lambda: self.ranges[depth](*first)):
            yield from self.indices(*first, index)

    def submit(self, engine: Engine, indices: tuple[int, ...]) -> None:
        engine.submit(
            self.codelet,
            *self.operands(*indices),
            priority=self.priority(*indices) if self.priority else 0,
            **(self.parameters(*indices) if self.parameters else {}),
        )


def _noted(tasks: _TaskClass, indices: tuple[int, ...], work: Callable[[], _T]) -> _T:
    try:
        return work()
    except Exception as error:
        error.add_note(f"in task {tasks.codelet.name}({', '.join(map(str, indices))}) of a graph")
        raise


class TaskGraph:
    """A graph whose tasks are made in the order of its steps, as the engine's window moves.

    In a step they are made class by class, as they were added; in a class by indices, the last one
    fastest. Tasks that access the same data follow each other in this order: there are no cycles.

    Parameters
    ----------
    steps : int

    Examples
    --------
    >>> import numpy as np
    >>> import quadriga
    >>> @quadriga.codelet(access=["read", "update"])
    ... def add(x, y):
    ...     y += x
    >>> values = np.ones(4)
    >>> with quadriga.Engine("cpu:1") as engine:
    ...     parts = [engine.data(each) for each in np.split(values, 4)]
    ...     graph = quadriga.TaskGraph(4)
    ...     graph.add(
    ...         add,
    ...         lambda k, i: [parts[k].read(), parts[i].update()],
    ...         ranges=[lambda k: range(k + 1, 4)],
    ...     )
    ...     print(graph.submit(engine))
    ...     engine.wait()
    6
    >>> print(values)
    [1. 2. 4. 8.]
    """

    def __init__(self, steps: int) -> None:
        if steps < 0:
            raise InvalidArgument(f"a graph of {steps} steps: expected 0 or more")
        self._steps = steps
        self._classes: list[_TaskClass] = []

    def add(
        self,
        codelet: Codelet,
        operands: Callable[..., Iterable[Operand]],
        *,
        ranges: Sequence[Callable[..., Iterable[int]]] = (),
        priority: Callable[..., int] | None = None,
        parameters: Callable[..., Mapping[str, Any]] | None = None,
    ) -> None:
        """Add a class of tasks: one for each step and tuple of indices.

        Parameters
        ----------
        codelet : Codelet
        operands : callable
            The operands of a task, from the step and its further indices.
        ranges : sequence of callables, optional
            The values of each further index, from the step and the indices before it.
        priority, parameters : callable, optional
            As for `Engine.submit`, from the step and the further indices.
        """
        if not isinstance(codelet, Codelet):
            raise InvalidArgument(f"codelet: expected a Codelet, not {type(codelet).__name__}")
        given: dict[str, Any] = {
            "operands": operands,
            "priority": priority,
            "parameters": parameters,
        }
        given |= {f"ranges[{i}]": each for i, each in enumerate(ranges)}
        for name, each in given.items():
            if not callable(each) and (each is not None or name not in ("priority", "parameters")):
                raise InvalidArgument(
                    f"{name} of {codelet.name}: expected a function of a task's indices, "
                    f"not {type(each).__name__}"
                )
        self._classes.append(_TaskClass(codelet, operands, tuple(ranges), priority, parameters))

    def submit(self, engine: Engine, *, stop: Callable[[], bool] | None = None) -> int:
        """Submit the tasks, waiting while the engine's window is full; return how many there were.

        Failures and cancellations are those of the tasks: `Engine.wait` raises them.

        Parameters
        ----------
        engine : Engine
        stop : callable, optional
            Asked before each task; once it returns true, no more are submitted.

        Raises
        ------
        Exception
            What `Engine.submit` or a function raises, with a note that names the task. The tasks
            before are submitted.
        """
        count = 0
        for step in range(self._steps):
            for tasks in self._classes:
                for indices in tasks.indices(step):
                    if stop is not None and stop():
                        return count
                    _noted(tasks, indices, lambda: tasks.submit(engine, indices))  # noqa: B023
                    count += 1
        return count
