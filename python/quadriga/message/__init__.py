# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/__init__.py: messages: where their elements are, and how they travel.
"""Messages between arrays: a layout says where a message's elements are and in which order.

Communicators carry them between the processes of one host.

Examples
--------
>>> import numpy as np
>>> from quadriga.message import Layout
>>> a = np.arange(12.0).reshape(3, 4)
>>> layout = Layout.of(a[:, 1:3])
>>> layout.pack(a[:, 1:3]).view(a.dtype)
array([ 1.,  2.,  5.,  6.,  9., 10.])
"""

from .._core import MessageStatus as Status
from .communicator import ANY_SOURCE, ANY_TAG, Communicator, waitall
from .devices import DeviceBuffer, Devices, DeviceStream
from .layout import Layout
from .plan import ExchangePlan
from .prediction import PredictedPath
from .request import Request
from .start import join, join_mpi, new_token, world
from .times import CollectiveTimes, NcclReport, StepTime

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "CollectiveTimes",
    "Communicator",
    "DeviceBuffer",
    "DeviceStream",
    "Devices",
    "ExchangePlan",
    "Layout",
    "NcclReport",
    "PredictedPath",
    "Request",
    "Status",
    "StepTime",
    "join",
    "join_mpi",
    "new_token",
    "waitall",
    "world",
]


def __dir__() -> list[str]:
    return __all__
