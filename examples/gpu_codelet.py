# SPDX-License-Identifier: BSD-3-Clause
# examples/gpu_codelet.py: an operation of one's own on GPUs: as CUDA C++, and as a CuPy function.
"""A wave runs along a string cut into tiles; GPUs compute it if there are any, else the host."""

import numpy as np

import quadriga

TILE, COUNT, STEPS = 4096, 16, 50
SOURCE = """
using Known = quadriga::Tile<const double>;
__global__ void advance(Known a, Known b, Known c, quadriga::Tile<double> next, double speed) {
  const long long k = quadriga::thread_x(), n = b.size();
  if (k >= n) return;
  const double around = (k > 0 ? b[k - 1] : a[n - 1]) + (k + 1 < n ? b[k + 1] : c[0]);
  next[k] = 2 * b[k] - next[k] + speed * (around - 2 * b[k]);
}
"""


on_gpus = quadriga.CudaSource(SOURCE, parameters={"speed": float})


@quadriga.codelet(access=["read", "read", "read", "update"], cuda=on_gpus)
def advance(left, here, right, following, speed):
    """What the CUDA source does, where there is no GPU; `following` holds the step before."""
    whole = np.concatenate([left[-1:], here, right[:1]])
    following[...] = 2 * here - following + speed * (whole[:-2] - 2 * here + whole[2:])


@quadriga.codelet(access=["read", "commute"], arrays="cupy")
def add_energy(tile, total):
    """NumPy's words are CuPy's: called with arrays of whichever library the device has."""
    total += (tile**2).sum()


def main():
    try:
        machine = quadriga.Machine.parse("cuda")
    except quadriga.Unavailable as error:
        machine = quadriga.Machine.host()
        print(f"on the host, for no GPU can be used: {error}")
    now = np.sin(np.linspace(0, 2 * np.pi, TILE * COUNT, endpoint=False))
    other, total = now.copy(), np.zeros(1)
    with quadriga.Engine(machine) as engine:
        here, there = ([engine.data(part) for part in np.split(a, COUNT)] for a in (now, other))
        for _ in range(STEPS):
            for i in range(COUNT):
                near = [here[i - 1].read(), here[i].read(), here[(i + 1) % COUNT].read()]
                engine.submit(advance, *near, there[i].update(), speed=0.25)
            here, there = there, here
        energy = engine.data(total)
        for tile in here:
            engine.submit(add_energy, tile.read(), energy.commute())
    print(f"mean square {total[0] / now.size:.6f}; a sine's is 0.5")
    assert abs(total[0] / now.size - 0.5) < 1e-3


main()
