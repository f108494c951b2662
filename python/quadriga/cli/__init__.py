# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/__init__.py: the command `quadriga`.
"""The command line: ``quadriga info``, ``solve``, ``cholesky``, ``matmul``, ``report``, and more.

Ends with status 0 if all was done, 1 if it failed, 2 if it was misused, 3 if something isn't
available here.
"""

from .main import main

__all__ = ["main"]
