# SPDX-License-Identifier: BSD-3-Clause
# examples/mpi/wave.py: a wave on a grid whose columns several ranks share, by mpi4py.
"""Borders travel from device memory by MPI's datatypes, and by an MPI that knows no devices.

Arrays are CuPy's where there is a GPU. Without one, --emulated gives memory that only the preload
library reaches; without the library all lies on the host. The printed energy is the same.

Run: mpiexec -n 4 quadriga mpi-preload [--emulated] wave.py [STEPS]
"""

import ctypes
import sys

import numpy as np
from mpi4py import MPI

ROWS, COLS = 256, 66  # a rank's part, with a border column on each side
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40


class Emulated:
    """An array in emulated device memory; MPI gets its address as it gets CuPy's."""

    def __init__(self, library, host):
        library.quadriga_emulated_malloc.restype = ctypes.c_void_p
        self.library, self.shape, self.nbytes = library, host.shape, host.nbytes
        self.address = library.quadriga_emulated_malloc(ctypes.c_size_t(host.nbytes))
        self[...] = host

    @property
    def __cuda_array_interface__(self):
        known = {"shape": self.shape, "typestr": "<f8", "version": 3, "strides": None}
        return known | {"data": (self.address, False)}

    def _move(self, to, source):
        arguments = ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(self.nbytes)
        self.library.quadriga_emulated_copy(*arguments)

    def __setitem__(self, _, host):
        self._move(self.address, np.ascontiguousarray(host).ctypes.data)

    def copy(self):
        host = np.empty(self.shape)
        self._move(host.ctypes.data, self.address)
        return host


def on_device(host):
    """The array on a GPU or in emulated memory if there is one, else itself; and how to wait."""
    try:
        import cupy

        return cupy.asarray(host), cupy.cuda.get_current_stream().synchronize
    except (ImportError, RuntimeError):  # no CuPy, or no GPU
        library = ctypes.CDLL(None)
        has_library = hasattr(library, "quadriga_emulated_malloc")
        return Emulated(library, host) if has_library else host, lambda: None


def column(index):
    return MPI.DOUBLE.Create_subarray((ROWS, COLS), (ROWS, 1), (0, index)).Commit()


world = MPI.COMM_WORLD
right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
first_ghost, first, last, last_ghost = (column(k) for k in (0, 1, COLS - 2, COLS - 1))
x = np.arange(COLS) + world.rank * (COLS - 2)
u, wait = on_device(np.exp(-((x - 40.0) ** 2) / 50) * np.ones((ROWS, 1)))
before = u.copy()
for _ in range(STEPS):
    wait()  # MPI sends what is there now
    requests = [
        world.Irecv([u, 1, first_ghost], left, 0),
        world.Irecv([u, 1, last_ghost], right, 1),
        world.Isend([u, 1, last], right, 0),
        world.Isend([u, 1, first], left, 1),
    ]
    MPI.Request.Waitall(requests)
    now = u.copy()
    after = now.copy()
    after[1:-1, 1:-1] = (
        1.2 * now[1:-1, 1:-1] - before[1:-1, 1:-1]
        + 0.2 * (now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:])
    )  # fmt: skip
    u[...] = after
    before = now

energy = world.allreduce(float((u.copy()[1:-1, 1:-1] ** 2).sum()))
if world.rank == 0:
    print(f"energy after {STEPS} steps on {world.size} ranks: {energy:.10g}")
