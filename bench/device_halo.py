# SPDX-License-Identifier: BSD-3-Clause
# bench/device_halo.py: borders of a grid of processes, in memory of devices, beside a step.
"""Exchange borders of width 2 in two periodic dimensions; the first rank prints lines of JSON.

usage: quadriga launch -n 4 bench/device_halo.py [--devices cuda] [--n 512] [--repeat N]

Each rank has n³ doubles and borders on four sides. `exchange` is that of the borders alone: from a
barrier to the slowest rank's end, the median of the repetitions. A step applies a star of 13 points
to all elements: those far from the borders while these are exchanged, then the rest. `step` is the
median with the exchange over that without it, alternating. `--devices cuda` takes CuPy, a GPU a
rank; without it NumPy computes on the host, for small n.
"""

import argparse
import json
import statistics
import time

import numpy as np

from quadriga import message

WIDTH = 2
STAR = r"""
extern "C" __global__ void star(const double* u, double* v, long long high, long long wide,
                                long long deep, int i0, int i1, int j0, int j1) {
  const long long rows = i1 - i0, columns = j1 - j0;
  for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < rows * columns * deep;
       at += (long long)gridDim.x * blockDim.x) {
    const long long k = at % deep, j = j0 + at / deep % columns, i = i0 + at / deep / columns;
    const long long here = (i * wide + j) * deep + k, row = wide * deep;
    double sum = 0.5 * u[here];
    for (int s = 1; s <= 2; ++s) {
      const double weight = s == 1 ? 0.0625 : 0.015625;
      sum += weight * (u[here - s * row] + u[here + s * row] + u[here - s * deep] +
                       u[here + s * deep]);
      sum += weight * (k >= s ? u[here - s] : 0.0);
      sum += weight * (k + s < deep ? u[here + s] : 0.0);
    }
    v[here] = sum;
  }
}
"""


class Host:
    """NumPy; what is launched has ended."""

    xp = np

    def launch(self, u, v, rows, columns):
        (i0, i1), (j0, j1) = rows, columns
        part = 0.5 * u[i0:i1, j0:j1]
        for s, weight in ((1, 0.0625), (2, 0.015625)):
            for shift in (-s, s):
                part += weight * u[i0 + shift : i1 + shift, j0:j1]
                part += weight * u[i0:i1, j0 + shift : j1 + shift]
            part[..., s:] += weight * u[i0:i1, j0:j1, :-s]
            part[..., :-s] += weight * u[i0:i1, j0:j1, s:]
        v[i0:i1, j0:j1] = part

    def finish(self):
        """Nothing is queued."""


class Gpu:
    """CuPy; work is queued on a stream of its own, which messages don't wait for."""

    def __init__(self, rank):
        import cupy

        self.xp = cupy
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        self.star = cupy.RawKernel(STAR, "star")
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def launch(self, u, v, rows, columns):
        words = (u, v, *map(np.int64, u.shape), *map(np.int32, (*rows, *columns)))
        with self.stream:
            self.star((132 * 16,), (256,), words)

    def finish(self):
        self.xp.cuda.runtime.deviceSynchronize()


class Grid:
    """Ranks side by side in two dimensions, the last of which ends where the first begins."""

    def __init__(self, comm, where, n):
        self.comm, self.where, self.n = comm, where, n
        high = max(p for p in range(1, 17) if comm.size % p == 0 and p * p <= comm.size)
        self.shape = (high, comm.size // high)
        self.place = divmod(comm.rank, self.shape[1])
        sides = (n + 2 * WIDTH, n + 2 * WIDTH, n)
        self.u, self.v = where.xp.zeros(sides), where.xp.zeros(sides)
        self.u[WIDTH:-WIDTH, WIDTH:-WIDTH] = comm.rank + 1
        where.finish()
        self.plan = comm.plan(*self.messages())

    def rank_at(self, dimension, shift):
        place = list(self.place)
        place[dimension] = (place[dimension] + shift) % self.shape[dimension]
        return place[0] * self.shape[1] + place[1]

    def border(self, dimension, begin):
        inner = [slice(WIDTH, -WIDTH)] * 2
        inner[dimension] = slice(begin, begin + WIDTH)
        return self.u[inner[0], inner[1]]

    def messages(self):
        sends, receives = [], []
        for dimension in (0, 1):
            for tag, shift in enumerate((-1, 1)):
                other = self.rank_at(dimension, shift)
                first, last = (WIDTH, 0) if shift < 0 else (self.n, self.n + WIDTH)
                tags = 2 * dimension + tag, 2 * dimension + 1 - tag
                sends.append((self.border(dimension, first), other, tags[0]))
                receives.append((self.border(dimension, last), other, tags[1]))
        return sends, receives

    def check(self):
        for dimension in (0, 1):
            for shift, at in ((-1, 0), (1, self.n + WIDTH)):
                border = self.border(dimension, at)
                if not bool((border == self.rank_at(dimension, shift) + 1).all()):
                    raise SystemExit("device_halo.py: a border has another rank's numbers")

    def step(self, exchanges):
        n, near = self.n, 2 * WIDTH
        inside = (near, n)
        self.where.launch(self.u, self.v, inside, inside)
        if exchanges:
            self.plan.start()
            self.plan.wait()
        whole = (WIDTH, n + WIDTH)
        for side in ((WIDTH, near), (n, n + WIDTH)):
            self.where.launch(self.u, self.v, side, whole)
            self.where.launch(self.u, self.v, inside, side)

    def seconds(self, call):
        self.where.finish()
        self.comm.barrier()
        begin = time.perf_counter()
        call()
        self.where.finish()
        return self.comm.allreduce(np.array([time.perf_counter() - begin]), op="max")[0]

    def exchange(self):
        self.plan.start()
        self.plan.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="host", choices=("host", "cuda"))
    parser.add_argument("--n", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=20)
    asked = parser.parse_args()
    with message.world(deadline=120) as comm:
        grid = Grid(comm, Gpu(comm.rank) if asked.devices == "cuda" else Host(), asked.n)
        grid.seconds(grid.exchange)  # opens what others have
        grid.check()
        alone = [grid.seconds(grid.exchange) for _ in range(asked.repeat)]
        grid.seconds(lambda: grid.step(True))
        with_it, without = [], []
        for _ in range(asked.repeat):
            with_it.append(grid.seconds(lambda: grid.step(True)))
            without.append(grid.seconds(lambda: grid.step(False)))
        if comm.rank:
            return
        sides = {"ranks": comm.size, "n": asked.n, "bytes": 4 * WIDTH * asked.n**2 * 8}
        microseconds = statistics.median(alone) * 1e6
        print(json.dumps({"case": "halo exchange", **sides, "us": microseconds, "goal_us": 100}))
        ratio = statistics.median(with_it) / statistics.median(without)
        step = {"us": statistics.median(with_it) * 1e6, "of_step_without": ratio, "goal": 1.05}
        print(json.dumps({"case": "halo step", **sides, **step}))


if __name__ == "__main__":
    main()
