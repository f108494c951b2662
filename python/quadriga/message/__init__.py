# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/__init__.py: messages: where their elements are, and how they travel.
"""Messages between arrays: a layout says where a message's elements are and in which order.

Examples
--------
>>> import numpy as np
>>> from quadriga.message import Layout
>>> a = np.arange(12.0).reshape(3, 4)
>>> layout = Layout.of(a[:, 1:3])
>>> layout.pack(a[:, 1:3]).view(a.dtype)
array([ 1.,  2.,  5.,  6.,  9., 10.])
"""

from .layout import Layout

__all__ = ["Layout"]


def __dir__() -> list[str]:
    return __all__
