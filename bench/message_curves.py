# SPDX-License-Identifier: BSD-3-Clause
# bench/message_curves.py: rates of messages over their size, for kinds of layouts, drawn.
"""Two processes exchange doubles that lie in several ways; prints a line of JSON for each point.

usage: mpiexec -n 2 python bench/message_curves.py --mpi [--svg FILE] [--most BYTES] [--rounds N]
       quadriga launch -n 2 bench/message_curves.py [--svg FILE] ...

Three ways alternate round by round in the same two processes: ours, MPI's datatypes (with --mpi, by
mpi4py), and by hand: NumPy packs, the packed bytes travel by ours, NumPy unpacks. The ceiling is a
copy of as many bytes within one process. A round is a message and an answer of 8 bytes, and the
quickest round counts: on a machine that others use it tells most of the way itself.
"""

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass

import numpy as np

from quadriga import message
from quadriga.message import Layout

WAYS = {"ours": "#1668b8", "MPI": "#c44e1c", "by hand": "#6a8f3c", "copy": "#999999"}


@dataclass
class Case:
    """Elements of an array on each side; layouts where they are no views."""

    sent: np.ndarray
    received: np.ndarray
    send_layout: Layout | None = None
    receive_layout: Layout | None = None
    indices: np.ndarray | None = None  # By hand: of the flat array, on both sides.

    @property
    def nbytes(self):
        return self.send_layout.nbytes if self.send_layout else self.sent.nbytes


def contiguous(count):
    return Case(np.arange(float(count)), np.zeros(count))


def submatrix(count):
    n = math.isqrt(count)
    return Case(np.arange(n * (n + 9.0)).reshape(n, n + 9)[:, :n], np.zeros((n, n + 9))[:, :n])


def transpose(count):
    n = math.isqrt(count)
    return Case(np.arange(float(n * n)).reshape(n, n), np.zeros((n, n)).T)


def triangle(count):
    n = math.isqrt(2 * count)
    layout = Layout.triangle(n, float)
    places = np.flatnonzero(np.tri(n, dtype=bool))
    return Case(np.arange(float(n * n)), np.zeros(n * n), layout, layout, places)


def runs_of_64_bytes(count):
    n = max(count // 8, 1)
    return Case(np.arange(16.0 * n).reshape(n, 16)[:, :8], np.zeros((n, 16))[:, :8])


def random_runs_of_48_bytes(count):
    n = max(count // 6, 1)
    starts = np.sort(np.random.default_rng(1).choice(2 * n, n, replace=False)) * 6
    layout = Layout.indexed(6, starts, float)
    places = (starts[:, None] + np.arange(6)).ravel()
    return Case(np.arange(12.0 * n), np.zeros(12 * n), layout, layout, places)


KINDS = [contiguous, submatrix, triangle, transpose, runs_of_64_bytes, random_runs_of_48_bytes]


class Ours:
    def __init__(self, comm, case):
        self.comm, self.case = comm, case

    def send(self):
        self.comm.send(self.case.sent, 1, layout=self.case.send_layout)

    def receive(self):
        self.comm.recv(self.case.received, 0, layout=self.case.receive_layout)


class ByHand(Ours):
    def send(self):
        case = self.case
        at = case.indices
        self.comm.send(np.ascontiguousarray(case.sent) if at is None else case.sent[at], 1)

    def receive(self):
        case = self.case
        if case.indices is None:
            packed = np.empty(case.received.shape)
            self.comm.recv(packed, 0)
            case.received[...] = packed
        else:
            packed = np.empty(len(case.indices))
            self.comm.recv(packed, 0)
            case.received[case.indices] = packed


class Mpi:
    """Datatypes that are committed before the first round."""

    def __init__(self, comm, case):
        from mpi4py import MPI

        self.comm = comm
        self.sent = self.spec(MPI, case.sent, case.indices)
        self.received = self.spec(MPI, case.received, case.indices)

    @staticmethod
    def spec(mpi, array, indices):
        """The whole memory, one element of a type."""
        double = mpi.DOUBLE
        if indices is not None:
            breaks = np.flatnonzero(np.diff(indices) != 1) + 1
            starts = np.concatenate(([0], breaks))
            lengths = np.diff(np.concatenate((starts, [len(indices)])))
            kind = double.Create_indexed(lengths.tolist(), indices[starts].tolist())
        elif array.ndim == 1:
            kind = double.Create_contiguous(array.size)
        else:
            rows, columns = array.shape
            inner = double.Create_hvector(columns, 1, array.strides[1])
            if array.strides[1] == array.itemsize:
                inner = double.Create_contiguous(columns)
            kind = inner.Create_hvector(rows, 1, array.strides[0])
        whole = array if array.base is None else array.base
        return [whole, 1, kind.Commit()]

    def send(self):
        self.comm.Send(self.sent, 1)

    def receive(self):
        self.comm.Recv(self.received, 0)


def seconds_of(ways, case, comm, rounds):
    """The quickest round of each way, which alternate; what arrives is compared with the first."""
    answer, least, expected = np.zeros(1), dict.fromkeys(ways, math.inf), None
    for number in range(rounds + 1):
        for name, way in ways.items():
            if comm.rank == 1:
                case.received[...] = 0
            comm.barrier()
            begin = time.perf_counter()
            if comm.rank == 0:
                way.send()
                comm.recv(answer, 1)
            else:
                way.receive()
                comm.send(answer, 0)
            if number > 0:
                least[name] = min(least[name], time.perf_counter() - begin)
            elif comm.rank == 1:
                expected = case.received.copy() if expected is None else expected
                assert np.array_equal(case.received, expected) and expected.any(), name
    return least


def copy_seconds(nbytes, rounds):
    given, into, least = np.ones(nbytes, "u1"), np.zeros(nbytes, "u1"), math.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        np.copyto(into, given)
        least = min(least, time.perf_counter() - begin)
    return least


def rows_of(comm, mpi, most, rounds):
    for kind in KINDS:
        size = 1024
        while size <= most:
            case = kind(size // 8)
            ways = {"ours": Ours(comm, case), "by hand": ByHand(comm, case)}
            if mpi:
                ways["MPI"] = Mpi(mpi, case)
            found = seconds_of(ways, case, comm, rounds if size < 1 << 22 else max(rounds // 4, 3))
            found["copy"] = copy_seconds(case.nbytes, rounds)
            for name, seconds in found.items():
                yield {
                    "case": kind.__name__,
                    "way": name,
                    "bytes": case.nbytes,
                    "value": case.nbytes / seconds,
                    "unit": "bytes/s",
                }
            size *= 4


def panel(kind, rows, left, top):
    """Lines over sizes, both logarithmic: 1 KiB to 64 MiB, 10 MB/s to 100 GB/s."""
    width, height = 250, 170

    def place(row):
        x = math.log2(row["bytes"] / 512) / 18
        y = (math.log10(max(row["value"], 1e7)) - 7) / 4
        return f"{left + x * width:.1f},{top + (1 - min(y, 1)) * height:.1f}"

    parts = [
        f'<text x="{left}" y="{top - 8}" font-size="13">{kind.replace("_", " ")}</text>',
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>',
    ]
    for power, unit in ((8, "100 MB/s"), (9, "1 GB/s"), (10, "10 GB/s")):
        y = top + (1 - (power - 7) / 4) * height
        parts.append(f'<path d="M{left},{y} h{width}" stroke="#eee"/>')
        parts.append(f'<text x="{left + 3}" y="{y - 2}" fill="#888">{unit}</text>')
    for power, unit in ((10, "1 KiB"), (15, "32 KiB"), (20, "1 MiB"), (25, "32 MiB")):
        x = left + (power - 9) / 18 * width
        parts.append(f'<text x="{x}" y="{top + height + 12}" fill="#888">{unit}</text>')
    for name, color in WAYS.items():
        line = " ".join(place(row) for row in rows if row["way"] == name)
        if line:
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
            )
    return "\n".join(parts)


def drawn(rows, note):
    """All panels and their legend, as SVG."""
    parts = [
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->",
        f"<!-- drawn by bench/message_curves.py: {note} -->",
        '<svg xmlns="http://www.w3.org/2000/svg" width="860" height="490"'
        ' font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for i, kind in enumerate(KINDS):
        of_kind = [row for row in rows if row["case"] == kind.__name__]
        parts.append(panel(kind.__name__, of_kind, 20 + 280 * (i % 3), 30 + 220 * (i // 3)))
    for i, (name, color) in enumerate(WAYS.items()):
        x = 20 + 110 * i
        parts.append(f'<path d="M{x},470 h24" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{x + 30}" y="474" font-size="12">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", action="store_true")
    parser.add_argument("--svg")
    parser.add_argument("--most", type=int, default=64 << 20)
    parser.add_argument("--rounds", type=int, default=40)
    asked = parser.parse_args()
    mpi = None
    if asked.mpi:
        from mpi4py import MPI

        mpi = MPI.COMM_WORLD
    comm = message.join_mpi(mpi, deadline=120) if mpi else message.world(deadline=120)
    with comm:
        if comm.size != 2:
            sys.exit(f"message_curves.py: {comm.size} processes; expected 2")
        rows = list(rows_of(comm, mpi, asked.most, asked.rounds))
        if comm.rank != 0:
            return
        for row in rows:
            print(json.dumps(row))
        if asked.svg:
            with open(asked.svg, "w") as file:
                file.write(drawn(rows, f"{asked.rounds} rounds"))


if __name__ == "__main__":
    main()
