# SPDX-License-Identifier: BSD-3-Clause
# bench/device_collectives.py: collectives of arrays in memory of devices, a rank a device.
"""Time bcast, reduce and allreduce of doubles; the first rank prints a line of JSON for each.

usage: quadriga launch -n 4 bench/device_collectives.py [--devices cuda] [--sizes 1MiB,1GiB]
                                                        [--repeat N] [--nccl] [--strided]
                                                        [--segments 4MiB,16MiB] [--explain]
                                                        [--ways messages,nccl]

`--devices cuda` takes CuPy's arrays, one GPU a rank in turn; by default each rank has an emulated
device. `by` says who carried a row's calls out: messages, or NCCL that the communicator opened.
With `--nccl`, NCCL by CuPy does the same in turn with ours, never at once. `--ways` names ways that
the communicator is forced to beside its own choice, as messages,nccl. `--strided` takes every other
column of a matrix. A call counts from a barrier to the slowest rank's end; the
least of the repetitions counts. `bus` is what NCCL calls so: bytes a second, of allreduce times
2 (n - 1) / n. `--segments` runs ours with each of these segments, too. `--explain` prints where
each rank's time went in one more call: phases, then the steps of a kind together (how long they
waited for what is before them, for the rank's turn, for the message, and how long data moved), and
each step of a plan with few.
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

    def array(self, shape, value):
        return self.devices.array(np.full(shape, value))

    def differing(self, array, due):
        """A number that isn't what is due; None: there is none."""
        found = array.get()
        return None if (found == due).all() else found.flat[0]

    def finish(self):
        """What is received has arrived."""


class Gpu:
    """A GPU, by CuPy."""

    def __init__(self, rank, most):
        import cupy

        self.cupy = cupy
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()

    def array(self, shape, value):
        return self.cupy.full(shape, value)

    def differing(self, array, due):
        return None if bool((array == due).all()) else float(array.ravel()[0])

    def finish(self):
        self.cupy.cuda.runtime.deviceSynchronize()


class Ours:
    def __init__(self, comm, segment=0, way=None):
        self.comm, self.segment, self.way = comm, segment, way
        self.name = f"ours, {way}" if way else "ours"
        if segment:
            self.name += f", segments of {segment}"

    def begin(self):
        self.comm.force(self.way, self.segment)
        self.before = self.comm.nccl().collectives

    def by(self):
        """Who carried out what was called since `begin`."""
        found = self.comm.nccl()
        return f"NCCL {found.version}" if found.collectives > self.before else "messages"

    def bcast(self, given, got):
        self.comm.bcast(given)

    def reduce(self, given, got):
        self.comm.reduce(given, got)

    def allreduce(self, given, got):
        self.comm.allreduce(given, got)


def signed(number):
    """NCCL's number of a communicator as CuPy has it: bytes, before CuPy 14 a tuple."""
    if isinstance(number, bytes):
        return np.frombuffer(number, "i1")
    return np.array(number, "i1")


def joined(nccl, size, words, rank):
    try:
        return nccl.NcclCommunicator(size, words.tobytes(), rank)
    except TypeError:  # before CuPy 14
        return nccl.NcclCommunicator(size, tuple(words.tolist()), rank)


class Nccl:
    """CuPy's NCCL on the current stream; contiguous arrays only."""

    name = "NCCL"

    def begin(self):
        """NCCL knows what to do."""

    def by(self):
        return f"NCCL {self.nccl.get_version()}"

    def __init__(self, comm, cupy):
        from cupy.cuda import nccl

        self.nccl, self.cupy = nccl, cupy
        words = np.zeros(128, "i1")
        if comm.rank == 0:
            words[:] = signed(nccl.get_unique_id())
        self.own = joined(nccl, comm.size, comm.bcast(words), comm.rank)

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
    if due is None:
        return
    found = where.differing(given if kind == "bcast" else got, due)
    if found is not None:
        sys.exit(f"device_collectives.py: {kind} gave {found}; expected {due}")


def operands(comm, where, shape):
    """What this rank gives and gets."""
    given, got = where.array(shape, comm.rank + 1.0), where.array(shape, 0.0)
    return (given[:, 0], got[:, 0]) if len(shape) == 2 else (given, got)


def seconds_of(ways, kind, comm, where, shape, repeat):
    least, by = dict.fromkeys(ways, math.inf), {}
    for number in range(repeat + 1):
        for way in ways:
            given, got = operands(comm, where, shape)
            where.finish()
            way.begin()
            comm.barrier()
            begin = time.perf_counter()
            getattr(way, kind)(given, got)
            where.finish()
            took = comm.allreduce(np.array([time.perf_counter() - begin]), op="max")[0]
            checked(kind, comm.rank, comm.size, given, got, where)
            by[way] = way.by()
            if number:  # The first opens what others have.
                least[way] = min(least[way], took)
    return {way: (seconds, by[way]) for way, seconds in least.items()}


def means_of(steps):
    """Microseconds of the mean step of one kind: each phase, from one time to the next."""
    phases = {
        "waited_us": lambda step: step.begun - step.ready,
        "call_us": lambda step: step.queued - step.begun,
        "matched_us": lambda step: max(0.0, step.matched - step.queued),
        "moved_us": lambda step: step.ended - max(step.matched, step.queued),
    }
    return {
        name: round(1e6 * sum(map(phase, steps)) / len(steps), 2) for name, phase in phases.items()
    }


def explained(times, rank, most=24):
    """Lines that say where the time of a rank's collective went."""
    head = {"case": f"{times.kind} explained", "rank": rank}
    ends = ("agreed", "packed", "moved", "ended")
    yield head | {
        "by": times.by,
        "plan": times.plan,
        "planned_us": round(1e6 * times.planned, 1),
        **{f"{name}_us": round(1e6 * getattr(times, name), 1) for name in ends},
    }
    for kind in ("send", "receive", "copy", "reduce"):
        steps = [step for step in times.steps if step.kind == kind]
        if steps:
            sizes = {"steps": len(steps), "bytes": sum(step.bytes for step in steps)}
            first, last = min(step.begun for step in steps), max(step.ended for step in steps)
            span = {"first_us": round(1e6 * first, 1), "last_us": round(1e6 * last, 1)}
            yield head | {"kind": kind} | sizes | means_of(steps) | span
    if len(times.steps) <= most:
        for number, step in enumerate(times.steps):
            moments = ("ready", "begun", "queued", "matched", "ended")
            at = {f"{name}_us": round(1e6 * getattr(step, name), 1) for name in moments}
            sides = {"kind": step.kind, "peer": step.peer, "bytes": step.bytes}
            yield head | {"step": number} | sides | at


def explain(kind, comm, where, shape):
    """Calls twice, for the first opens memory; all ranks print in their order."""
    comm.force()
    for _ in range(2):
        given, got = operands(comm, where, shape)
        for _ in range(2):
            where.finish()
            comm.barrier()
            comm.note_times()
            getattr(Ours(comm), kind)(given, got)
            times = comm.times()
            comm.note_times(False)
    for rank in range(comm.size):
        if rank == comm.rank:
            for line in explained(times, rank):
                print(json.dumps(line), flush=True)
        comm.barrier()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="emulated", choices=("emulated", "cuda"))
    parser.add_argument("--sizes", default="1MiB,16MiB")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--nccl", action="store_true")
    parser.add_argument("--strided", action="store_true")
    parser.add_argument("--segments", default="")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--ways", default="")
    asked = parser.parse_args()
    sizes = [bytes_of(each) for each in asked.sizes.split(",")]
    with message.world(deadline=120) as comm:
        where = (Gpu if asked.devices == "cuda" else Emulated)(comm.rank, max(sizes))
        segments = [bytes_of(each) for each in asked.segments.split(",") if each]
        ways = [Ours(comm)] + [Ours(comm, each) for each in segments]
        ways += [Ours(comm, way=each) for each in asked.ways.split(",") if each]
        if asked.nccl:
            ways.append(Nccl(comm, where.cupy))
        for size in sizes:
            shape = (size // 8, 2) if asked.strided else (size // 8,)
            for kind in KINDS:
                found = seconds_of(ways, kind, comm, where, shape, asked.repeat)
                share = 2 * (comm.size - 1) / comm.size if kind == "allreduce" else 1
                for way, (seconds, by) in found.items():
                    row = {
                        "case": f"{kind}{'-strided' if asked.strided else ''}",
                        "way": way.name,
                        "by": by,
                        "ranks": comm.size,
                        "bytes": size,
                        "seconds": seconds,
                        "bus": share * size / seconds,
                    }
                    if comm.rank == 0:
                        print(json.dumps(row), flush=True)
                if asked.explain:
                    explain(kind, comm, where, shape)


if __name__ == "__main__":
    main()
