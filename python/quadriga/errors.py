# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/errors.py: the exceptions of the package; each is a builtin one, too.
"""What can go wrong, so that it can be caught by our names or by Python's own."""

from __future__ import annotations

import numpy as np


class Error(Exception):
    """Base of all that Quadriga raises by itself."""


class InvalidArgument(Error, ValueError):
    """A value, shape or type that the caller passed; the message says what was expected."""


class InvalidType(InvalidArgument, TypeError):
    """A value of a type, or an array of an element type, that isn't accepted."""


class TooLarge(Error, MemoryError):
    """A task or a matrix that can never fit the memory it needs; both sizes are named."""


class NotPositiveDefinite(Error, np.linalg.LinAlgError):
    """A matrix without a Cholesky factor.

    Attributes
    ----------
    minor : int
        The leading minor that isn't positive, counted from 1 as LAPACK's `info`.
    """

    minor: int = 0


class SingularMatrix(Error, np.linalg.LinAlgError):
    """A triangular matrix with a zero on its diagonal."""


class LinAlgWarning(RuntimeWarning):
    """A matrix so nearly singular that the solution has no digit to rely on."""


class TaskFailed(Error, RuntimeError):
    """A task failed for a reason that isn't an exception of Python's."""


class DeviceLost(Error, RuntimeError):
    """A device is gone, and with it the only copy of some data."""


class Deadline(Error, TimeoutError):
    """A wait reached its timeout; the work goes on."""


class Cancelled(Error, RuntimeError):
    """The work was cancelled before it ran.

    Attributes
    ----------
    asked : bool
        Whether `Future.cancel` asked for it.
    """

    asked: bool = False


class IoError(Error, OSError):
    """A file that can't be read, written or held."""


class Unavailable(Error, RuntimeError):
    """Not on this machine, not in this build, or not in this process (after a fork)."""


class Internal(Error, RuntimeError):
    """A bug of Quadriga's; please report it."""
