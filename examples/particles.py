# SPDX-License-Identifier: BSD-3-Clause
# examples/particles.py: particles that migrate between subdomains; none is lost; and drawn.
# Run it by: quadriga launch -n 4 examples/particles.py (any number of processes; or as is)
import numpy as np

from quadriga import message
from quadriga.message import Layout

COUNT, STEPS, TIME_STEP = 20000, 300, 0.05
PARTICLE = np.dtype([("x", "f8"), ("y", "f8"), ("number", "i8")])


def start():
    """A drop at rest, let go in a vortex that fills the unit square."""
    random, drop = np.random.default_rng(1), np.zeros(COUNT, PARTICLE)
    drop["x"], drop["y"] = 0.25 + 0.12 * random.uniform(-1, 1, (2, COUNT))
    drop["number"] = np.arange(COUNT)
    return drop


def flow(x, y):
    """The vortex's velocity: no particle crosses the rim, and no volume is gained."""
    return 4 * x * (1 - x) * (1 - 2 * y), -4 * (1 - 2 * x) * y * (1 - y)


def move(particles):
    """A step of the midpoint rule."""
    u, v = flow(particles["x"], particles["y"])
    u, v = flow(particles["x"] + TIME_STEP / 2 * u, particles["y"] + TIME_STEP / 2 * v)
    particles["x"] += TIME_STEP * u
    particles["y"] += TIME_STEP * v


def migrate(comm, particles, count):
    """Sends each particle to the process whose strip it is in; says how many are here now."""
    owner = (particles["x"][:count] * comm.size).astype(int)
    leaving = [np.flatnonzero((owner == to) & (to != comm.rank)) for to in range(comm.size)]
    arriving = comm.alltoall(np.array([len(each) for each in leaving]))
    # They are read where they are, scattered among those that stay; arrivals go behind the last.
    requests = [
        comm.isend(particles, to, layout=Layout.indexed(1, places, PARTICLE))
        for to, places in enumerate(leaving)
        if len(places)
    ]
    end = count
    for source in np.flatnonzero(arriving):
        requests.append(comm.irecv(particles[end : end + arriving[source]], source))
        end += arriving[source]
    message.waitall(requests)
    # Only now their places are free: the last particles fill them.
    gone = np.flatnonzero(owner != comm.rank)
    count = end - len(gone)
    last = np.setdiff1d(np.arange(count, end), gone)
    particles[gone[gone < count]] = particles[last]
    return count


if __name__ == "__main__":
    with message.world(deadline=60) as comm:
        # All begin on one process, and the first migration hands them out; each has room for all.
        particles, count = start(), COUNT if comm.rank == 0 else 0
        for _ in range(STEPS):
            count = migrate(comm, particles, count)
            move(particles[:count])
            assert comm.allreduce(np.array(count)) == COUNT, "particles were lost"
        counts = comm.gather(np.array(count))
        comm.isend(particles[:count], 0)
        if comm.rank == 0:
            found, ends = np.zeros(COUNT, PARTICLE), np.cumsum(counts)
            for rank, end in enumerate(ends):
                comm.recv(found[end - counts[rank] : end], rank)
            alone = start()
            for _ in range(STEPS):
                move(alone)
            assert (found[found["number"].argsort()] == alone).all(), "not to the bit as alone"
            density, _, _ = np.histogram2d(found["y"], found["x"], (24, 64), [(0, 1), (0, 1)])
            for line in np.minimum(np.sqrt(density), 9).astype(int):
                print("".join(" .:-=+*#%@"[each] for each in line))
            print("particles of each process:", *counts)
