# SPDX-License-Identifier: BSD-3-Clause
# tests/python/arrays_of_tests.py: arrays that lie on a device, where no GPU is: what CuPy and
# PyTorch are to the engine, over memory of an emulated device.
"""Arrays of a library that nobody knows, on emulated devices or lying about where they are."""

from __future__ import annotations

import numpy as np

import quadriga
from quadriga import _core


class OnDevice:
    """Offers `__cuda_array_interface__`, as CuPy does; `view` shows its elements to tests."""

    def __init__(self, view, *, read_only=False, stream=None, version=3):
        self.view = view
        strides = None if view.flags.c_contiguous else view.strides
        self.__cuda_array_interface__ = {
            "version": version,
            "shape": view.shape,
            "typestr": view.dtype.str,
            "data": (view.ctypes.data, read_only),
            "strides": strides,
            "stream": stream,
        }


class Pool:
    """Memory of an emulated device: tiles that tasks there tell the addresses of."""

    def __init__(self, engine, device=0):
        self.engine = engine
        self.device = device
        self.held = []

    def array(self, values, order="F", **options):
        """An array there with the same elements."""
        values = np.asarray(values)
        found = []

        @quadriga.codelet(access=["write"], host_only=False, name="where")
        def where(tile):
            tile[...] = 0
            found.append(tile.ctypes.data)

        data = self.engine.temporary(max(values.nbytes, 1), np.uint8, keep=True)
        self.engine.submit(where, data.write(), device=self.device).result()
        self.held.append(data)
        memory = _core.memory(found[0], max(values.nbytes, 1), True)
        view = np.ndarray(values.shape, values.dtype, memory, order=order)
        view[...] = values
        return OnDevice(view, **options)
