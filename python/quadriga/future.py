# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/future.py: a task that was submitted, as its caller holds it.
"""Futures: whether a task has ended, and what came of it."""

from __future__ import annotations

from typing import Any, Protocol

from .arguments import seconds_of
from .errors import Deadline, Error
from .record import Record


class Owner(Protocol):
    """What a future needs of its engine."""

    def ended(self, record: Record) -> bool: ...

    def wait_task(self, record: Record, seconds: float) -> None: ...


class Future:
    """A task that was submitted.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> total = quadriga.codelet(access=["read"], name="total")(np.sum)
    >>> with quadriga.Engine("cpu:1") as engine:
    ...     future = engine.submit(total, engine.data(np.ones(4)).read())
    ...     float(future.result(timeout=10))
    4.0
    """

    def __init__(self, engine: Owner, record: Record):
        self._engine = engine
        self._record = record
        self._error: BaseException | None = None
        self._settled = False

    @property
    def id(self) -> int:
        """The task's number in order of submission, as in traces and errors."""
        assert self._record.core is not None
        return self._record.core.id

    def done(self) -> bool:
        """Whether the task has ended, well or not."""
        return self._settled or self._engine.ended(self._record)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the task failed with, once it has ended; None if it ended well.

        Raises
        ------
        Deadline
            If the timeout passes before; the task goes on.
        """
        if not self._settled:
            try:
                self._engine.wait_task(self._record, seconds_of(timeout))
            except Deadline as error:
                if self._record.exception is not error:
                    raise
                self._error = error
            except Exception as error:
                if isinstance(error, Error) or error is self._record.exception:
                    self._error = error
                else:
                    raise
            self._settled = True
        return self._error

    def result(self, timeout: float | None = None) -> Any:
        """What the body returned, once the task has ended; raises what it raised."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._record.value

    def __repr__(self) -> str:
        state = "ended" if self.done() else "not ended"
        return f"<Future of {self._record.codelet.name!r}, task {self.id}, {state}>"
