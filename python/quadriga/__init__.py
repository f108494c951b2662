# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/__init__.py: the package's public names.
"""Task graphs and linear algebra bigger than any GPU's memory, on all devices of a machine."""

from ._core import __version__

__all__ = ["__version__"]
