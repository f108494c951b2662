# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/errors.py: the exceptions of the package; each is a builtin one, too.
"""Exceptions; each also derives from one of Python's or NumPy's own."""

from __future__ import annotations

import concurrent.futures

import numpy as np


class Error(Exception):
    """Base of all exceptions that Quadriga raises itself."""


class InvalidArgument(Error, ValueError):
    """A value, shape or type is invalid; the message says what was expected."""


class InvalidType(InvalidArgument, TypeError):
    """The type of a value, or an array's element type, isn't accepted."""


class TooLarge(Error, MemoryError):
    """A task or a matrix can never fit in memory; the message gives both sizes in bytes."""


class NotPositiveDefinite(Error, np.linalg.LinAlgError):
    """A matrix has no Cholesky factor.

    Attributes
    ----------
    minor : int
        Order of the first leading minor that isn't positive, from 1, as LAPACK's `info`.
    """

    minor: int = 0


class SingularMatrix(Error, np.linalg.LinAlgError):
    """A triangular matrix has a zero on its diagonal."""


class LinAlgWarning(RuntimeWarning):
    """A matrix is so nearly singular that no digit of the solution is reliable."""


class TaskFailed(Error, RuntimeError):
    """A task failed for a reason other than an exception in Python."""


class DeviceLost(Error, RuntimeError):
    """A device is lost, and with it the only valid copy of some data."""


class PeerLost(Error, ConnectionError):
    """A process that a communicator's call needs has ended, or has left the communicator.

    Attributes
    ----------
    rank : int
        Its rank in the communicator of the call.
    """

    rank: int = -1


class Deadline(Error, TimeoutError):
    """A wait reached its timeout; the work continues.

    Attributes
    ----------
    of_task : bool
        Whether a task failed by a deadline of its own, as a message's: that one is over.
    """

    of_task: bool = False


class Cancelled(Error, RuntimeError, concurrent.futures.CancelledError):
    """The task was cancelled before it ran, by a call or because a task it depends on failed.

    Attributes
    ----------
    asked : bool
        Whether `Future.cancel` asked for it.
    """

    asked: bool = False


class IoError(Error, OSError):
    """A file can't be read or written; the message names it."""


class Unavailable(Error, RuntimeError):
    """Not available: on this machine, in this build, or in a forked process."""


class Internal(Error, RuntimeError):
    """A bug in Quadriga; please report it."""
