# SPDX-License-Identifier: BSD-3-Clause
# bench/device_collectives.py: collectives of arrays in memory of devices, a rank a device.
"""Time bcast, reduce and allreduce of doubles; the first rank prints a line of JSON for each.

usage: quadriga launch -n 4 bench/device_collectives.py [--devices cuda] [--sizes 1MiB,1GiB]
                                                        [--repeat N] [--nccl] [--strided]

`--devices cuda` takes CuPy's arrays, one GPU a rank in turn; by default each rank has an emulated
device. With `--nccl`, NCCL by CuPy does the same in turn with ours, never at once. `--strided`
takes every other column of a matrix. A call counts from a barrier to the slowest rank's end; the
least of the repetitions counts. `bus` is what NCCL calls so: bytes a second, of allreduce times
2 (n - 1) / n.
"""

import argparse
import json
import math
import sys
import time

import numpy as np

from quadriga import message

KINDS = ("bcast", "reduce", "allreduce")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def bytes_of(text):
    for unit, size in UNITS.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * size)
    return int(text)


class Emulated:
    """A device of this process alone."""

    def __init__(self, rank, most):
        room = 6 * most + 2**26
        self.devices = message.Devices(f"emulated:1,memory={room},h2d=20GB/s,peer=20GB/s")

    def array(self, values):
        return self.devices.array(values)

    def numbers(self, array):
        return array.get()

    def finish(self):
        """What is received has arrived."""


class Gpu:
    """A GPU, by CuPy."""

    def __init__(self, rank, most):
        import cupy

        self.cupy = cupy
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()

    def array(self, values):
        return self.cupy.asarray(values)

    def numbers(self, array):
        return self.cupy.asnumpy(array)

    def finish(self):
        self.cupy.cuda.runtime.deviceSynchronize()


class Ours:
    name = "ours"

    def __init__(self, comm):
        self.comm = comm

    def bcast(self, given, got):
        self.comm.bcast(given)

    def reduce(self, given, got):
        self.comm.reduce(given, got)

    def allreduce(self, given, got):
        self.comm.allreduce(given, got)


class Nccl:
    """CuPy's NCCL on the current stream; contiguous arrays only."""

    name = "NCCL"

    def __init__(self, comm, cupy):
        from cupy.cuda import nccl

        self.nccl, self.cupy = nccl, cupy
        words = np.zeros(128, "i1")
        if comm.rank == 0:
            words[:] = np.array(nccl.get_unique_id(), "i1")
        self.own = nccl.NcclCommunicator(comm.size, tuple(comm.bcast(words).tolist()), comm.rank)

    def ends(self, call, *words):
        stream = self.cupy.cuda.get_current_stream()
        call(*words, stream.ptr)
        stream.synchronize()

    def bcast(self, given, got):
        self.ends(self.own.bcast, given.data.ptr, given.size, self.nccl.NCCL_FLOAT64, 0)

    def reduce(self, given, got):
        words = given.data.ptr, got.data.ptr, given.size, self.nccl.NCCL_FLOAT64
        self.ends(self.own.reduce, *words, self.nccl.NCCL_SUM, 0)

    def allreduce(self, given, got):
        words = given.data.ptr, got.data.ptr, given.size, self.nccl.NCCL_FLOAT64
        self.ends(self.own.allReduce, *words, self.nccl.NCCL_SUM)


def checked(kind, rank, ranks, given, got, where):
    """Raises if an end result is wrong: ranks give their rank + 1."""
    total = ranks * (ranks + 1) / 2
    due = {"bcast": 1.0, "reduce": total if rank == 0 else None, "allreduce": total}[kind]
    found = where.numbers(given if kind == "bcast" else got)
    if due is not None and not (found == due).all():
        sys.exit(f"device_collectives.py: {kind} gave {found.flat[0]}; expected {due}")


def seconds_of(ways, kind, comm, where, values, repeat):
    least = dict.fromkeys(ways, math.inf)
    for number in range(repeat + 1):
        for way in ways:
            given, got = where.array(values), where.array(np.zeros(values.shape))
            if values.shape[-1] == 2:
                given, got = given[:, 0], got[:, 0]
            where.finish()
            comm.barrier()
            begin = time.perf_counter()
            getattr(way, kind)(given, got)
            where.finish()
            took = comm.allreduce(np.array([time.perf_counter() - begin]), op="max")[0]
            checked(kind, comm.rank, comm.size, given, got, where)
            if number:  # The first opens what others have.
                least[way] = min(least[way], took)
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="emulated", choices=("emulated", "cuda"))
    parser.add_argument("--sizes", default="1MiB,16MiB")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--nccl", action="store_true")
    parser.add_argument("--strided", action="store_true")
    asked = parser.parse_args()
    sizes = [bytes_of(each) for each in asked.sizes.split(",")]
    with message.world(deadline=120) as comm:
        where = (Gpu if asked.devices == "cuda" else Emulated)(comm.rank, max(sizes))
        ways = [Ours(comm)]
        if asked.nccl:
            ways.append(Nccl(comm, where.cupy))
        for size in sizes:
            shape = (size // 8, 2) if asked.strided else (size // 8,)
            values = np.full(shape, comm.rank + 1.0)
            for kind in KINDS:
                found = seconds_of(ways, kind, comm, where, values, asked.repeat)
                share = 2 * (comm.size - 1) / comm.size if kind == "allreduce" else 1
                for way, seconds in found.items():
                    row = {
                        "case": f"{kind}{'-strided' if asked.strided else ''}",
                        "way": way.name,
                        "ranks": comm.size,
                        "bytes": size,
                        "seconds": seconds,
                        "bus": share * size / seconds,
                    }
                    if comm.rank == 0:
                        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
