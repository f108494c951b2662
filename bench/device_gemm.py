# SPDX-License-Identifier: BSD-3-Clause
# bench/device_gemm.py: a product of matrices whose blocks are resident on 1, 2 and 4 processes.
"""C = A B by CuPy's DGEMM, a GPU a rank; panels travel as messages while others are multiplied.

usage: quadriga launch -n 4 bench/device_gemm.py [--devices cuda] [--n 32768] [--panel 2048]
                                                 [--repeat N]

The first rank alone computes all, then two ranks, then four: each has its block of A, B and C in
memory of its device, and gets the panels that it lacks from its row's and its column's ranks. A
line of JSON for each: seconds from a barrier to the slowest rank's end, the least of the
repetitions, and how many times as fast as one. Without `--devices cuda` NumPy computes small ones.
"""

import argparse
import json
import math
import time

import numpy as np

from quadriga import message

GOALS = {2: 1.95, 4: 3.85}


class Host:
    xp = np

    def multiply(self, left, right, into):
        into += left @ right

    def finish(self):
        """What NumPy does has ended."""


class Gpu:
    def __init__(self, rank):
        import cupy
        from cupy import cublas

        self.xp, self.cublas = cupy, cublas
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def multiply(self, left, right, into):
        with self.stream:
            self.cublas.gemm("N", "N", left, right, out=into, beta=1.0)

    def finish(self):
        self.xp.cuda.runtime.deviceSynchronize()


class Product:
    """A rank's blocks. Numbers are such that each sum is known, and exact."""

    def __init__(self, comm, where, n, panel):
        self.comm, self.where = comm, where
        high = 2 if comm.size == 4 else 1
        wide = comm.size // high
        self.row, self.column = divmod(comm.rank, wide)
        self.wide, self.panel = wide, panel
        rows, columns = n // high, n // wide
        xp, k = where.xp, np.arange(n)
        self.left_of_k, self.right_of_k = k % 5 + 1.0, k % 3 + 1.0
        self.i = xp.asarray(np.arange(self.row * rows, (self.row + 1) * rows) % 7 + 1.0)
        self.j = xp.asarray(
            np.arange(self.column * columns, (self.column + 1) * columns) % 11 + 1.0
        )
        # A by columns and B by rows, so that panels lie side by side.
        self.a_begin, self.b_begin = self.column * (n // wide), self.row * (n // high)
        own_a = xp.asarray(self.left_of_k[self.a_begin : self.a_begin + n // wide])
        own_b = xp.asarray(self.right_of_k[self.b_begin : self.b_begin + n // high])
        self.a = xp.asfortranarray(self.i[:, None] * own_a[None, :])
        self.b = xp.ascontiguousarray(own_b[:, None] * self.j[None, :])
        self.c = xp.zeros((rows, columns), order="F")
        self.panels = list(range(0, n, panel))
        self.others = {
            at: (
                None if self.owner_a(at) == self.column else xp.empty((rows, panel), order="F"),
                None if self.owner_b(at) == self.row else xp.empty((panel, columns)),
            )
            for at in self.panels
        }

    def owner_a(self, at):
        return at // self.a.shape[1] if self.wide > 1 else 0

    def owner_b(self, at):
        return at // self.b.shape[0]

    def own_a(self, at):
        return self.a[:, at - self.a_begin : at - self.a_begin + self.panel]

    def own_b(self, at):
        return self.b[at - self.b_begin : at - self.b_begin + self.panel]

    def order(self):
        """Panels that need no message first, then by turns from the own ones on."""
        begin = self.panels.index(self.a_begin)
        turned = self.panels[begin:] + self.panels[:begin]
        return sorted(turned, key=lambda at: sum(each is not None for each in self.others[at]))

    def start(self):
        """All messages at once; they arrive in the order of the receiver's panels."""
        comm, wide, requests = self.comm, self.wide, {}
        for at in self.order():
            left, right = self.others[at]
            requests[at] = []
            if left is not None:
                source = self.row * wide + self.owner_a(at)
                requests[at].append(comm.irecv(left.T, source, 2 * at))
            if right is not None:
                source = self.owner_b(at) * wide + self.column
                requests[at].append(comm.irecv(right, source, 2 * at + 1))
        sent = []
        for at in self.panels:
            if self.owner_a(at) == self.column:
                for column in set(range(wide)) - {self.column}:
                    dest = self.row * wide + column
                    sent.append(comm.isend(self.own_a(at).T, dest, 2 * at))
            if self.owner_b(at) == self.row:
                for row in set(range(comm.size // wide)) - {self.row}:
                    dest = row * wide + self.column
                    sent.append(comm.isend(self.own_b(at), dest, 2 * at + 1))
        return requests, sent

    def run(self):
        requests, sent = self.start()
        for at in self.order():
            for request in requests[at]:
                request.wait()
            left, right = self.others[at]
            left = self.own_a(at) if left is None else left
            right = self.own_b(at) if right is None else right
            self.where.multiply(left, right, self.c)
        for request in sent:
            request.wait()
        self.where.finish()

    def seconds(self, repeat):
        least = math.inf
        for number in range(repeat + 1):
            self.c[:] = 0
            self.where.finish()
            self.comm.barrier()
            begin = time.perf_counter()
            self.run()
            took = self.comm.allreduce(np.array([time.perf_counter() - begin]), op="max")[0]
            if number:  # The first opens what others have.
                least = min(least, took)
        total = float(self.left_of_k @ self.right_of_k)
        if not bool((self.c == total * self.i[:, None] * self.j[None, :]).all()):
            raise SystemExit("device_gemm.py: a wrong product")
        return least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="host", choices=("host", "cuda"))
    parser.add_argument("--n", type=int, default=512)
    parser.add_argument("--panel", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=2)
    asked = parser.parse_args()
    with message.world(deadline=300) as comm:
        where = Gpu(comm.rank) if asked.devices == "cuda" else Host()
        alone = 0.0
        for ranks in (1, 2, 4):
            if ranks > comm.size:
                break
            part = comm.Split(0 if comm.rank < ranks else -1)
            if part is not None:
                product = Product(part, where, asked.n, asked.panel or asked.n // 16)
                seconds = product.seconds(asked.repeat)
                alone = alone or seconds
                row = {"case": "gemm", "ranks": ranks, "n": asked.n, "seconds": seconds}
                row |= {"tflops": 2e-12 * asked.n**3 / seconds, "times_one": alone / seconds}
                row["goal"] = GOALS.get(ranks)
                if comm.rank == 0:
                    print(json.dumps(row), flush=True)
                del product
            comm.barrier()


if __name__ == "__main__":
    main()
