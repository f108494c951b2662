# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_shared_memory_model.py: random programs on shared memory against NumPy.
"""Programs that register, slice, write on the host, call linalg, cancel and remove give what NumPy
gives. What cancelled tasks should have written is lost, until the program writes it.

``QUADRIGA_TEST_PROGRAMS`` says how many programs run on each kind of device, 60 by default;
``QUADRIGA_TEST_SEED`` says which is the first. An engine runs some programs, one after another.
Many programs are shared out to one process a core. There most engines keep to their process's core,
where a thread wakes another one in a fraction of the time; each fourth uses all cores.

On GPUs bodies are CUDA sources, and CuPy's where it is installed:
``QUADRIGA_TEST_PROGRAMS=1000 pytest tests/python/test_shared_memory_model.py -k gpus``.
"""

import contextlib
import importlib.util
import multiprocessing
import os
import random

import numpy as np
import pytest
from gpus_of_tests import ABSENCE, on_gpu
from kernels_on_host import compile_for_gpu, run_on_host
from test_sharing import COST, ENGINES

import quadriga
from quadriga import linalg

PROGRAMS = int(os.environ.get("QUADRIGA_TEST_PROGRAMS", "60"))
FIRST = int(os.environ.get("QUADRIGA_TEST_SEED", "0"))
HAS_GPUS = not ABSENCE
SIZE = 12
ON_AN_ENGINE = 20
MANY = 1000


def shift(x):
    x[...] = np.roll(x, 1) % 64 + 1


def combine(x, y):
    y[...] = (2 * y + x.sum()) % 128


def overwrite(x, y):
    y[...] = x.sum() % 32


def gather(x, y):
    y += x.sum() % 8


BODIES = {
    "shift": (shift, ("update",)),
    "combine": (combine, ("read", "update")),
    "overwrite": (overwrite, ("read", "write")),
    "gather": (gather, ("read", "commute")),
}
# One thread does all: what is tested is where the content is, not how fast it is made.
SOURCE = """
using Read = quadriga::Tile<const double>;
using Write = quadriga::Tile<double>;
__device__ double sum(Read x) {
  double total = 0;
  for (long long k = 0; k < x.size(); ++k) total += x[k];
  return total;
}
__global__ void shift(Write x) {
  double before = x[x.size() - 1];
  for (long long k = 0; k < x.size(); ++k) {
    const double next = x[k];
    x[k] = fmod(before, 64.0) + 1;
    before = next;
  }
}
__global__ void combine(Read x, Write y) {
  const double total = sum(x);
  for (long long k = 0; k < y.size(); ++k) y[k] = fmod(2 * y[k] + total, 128.0);
}
__global__ void overwrite(Read x, Write y) {
  const double value = fmod(sum(x), 32.0);
  for (long long k = 0; k < y.size(); ++k) y[k] = value;
}
__global__ void gather(Read x, Write y) {
  const double more = fmod(sum(x), 8.0);
  for (long long k = 0; k < y.size(); ++k) y[k] += more;
}
"""
SOURCES = {name: quadriga.CudaSource(SOURCE, kernel=name, grid=1, block=1) for name in BODIES}
#: Of each body for devices: as a CUDA source, and on CuPy's arrays.
VARIANTS = {
    name: [{"cuda": SOURCES[name]}]
    + ([{"arrays": "cupy"}] if HAS_GPUS and importlib.util.find_spec("cupy") else [])
    for name in BODIES
}
#: First of all on the host alone.
CODELETS = {
    name: [quadriga.codelet(access=access, name=name, cost=COST)(body)]
    + [
        quadriga.codelet(access=access, name=name, cost=COST, host_only=False, **variant)(body)
        for variant in VARIANTS[name]
    ]
    for name, (body, access) in BODIES.items()
}
NAMES = sorted(BODIES)
LOOK = quadriga.codelet(access=["read"], name="look", cost=COST, host_only=True)(lambda x: x.sum())
FILL = quadriga.codelet(access=["write"], name="fill", cost=COST, host_only=True)(
    lambda x: x.fill(5)
)


def check_equal(found, expected):
    """As NumPy's, which words what differs; this one is quicker where nothing does."""
    if not np.array_equal(found, expected):
        np.testing.assert_array_equal(found, expected)


def views_of(base):
    """Views of one array that an engine takes, in different shapes and with gaps."""
    backwards = [base[::-1], base[:, 6:2:-1], base.reshape(-1)[::-3]]
    return [
        base,
        base.T,
        base[2:5],
        base[:, 3:7],
        base[:, 5],
        base[4:, :6],
        base.reshape(-1),
        base.reshape(-1)[::3],
        base.reshape(-1)[10:40],
        *([] if HAS_GPUS else backwards),  # bodies there don't take them
    ]


class Program:
    """One random program, on an engine and by NumPy at once; values are small whole numbers."""

    def __init__(self, seed, engine):
        self.random = random.Random(seed)
        self.engine = engine
        self.devices = [each.name for each in engine.machine.devices if each.kind != "cpu"]
        values = np.random.default_rng(seed).integers(0, 9, (2, SIZE, SIZE)).astype(float)
        self.bases = [values[0].copy(), values[1].copy()]
        self.expected = [values[0].copy(), values[1].copy()]
        self.mine = [views_of(base) for base in self.bases]
        self.theirs = [views_of(base) for base in self.expected]
        self.resident = self.random.random() < 0.5
        self.held = {}
        self.lost = [np.zeros((SIZE, SIZE), bool) for _ in self.bases]
        self.losses = [views_of(lost) for lost in self.lost]
        self.note_all()

    def run(self, steps):
        kinds = [self.submit] * 20 + [
            self.call,
            self.write,
            self.on_host,
            self.forget,
            self.wait,
        ] * 2
        kinds.append(self.cancel)
        for _ in range(steps):
            self.random.choice(kinds)()
        self.engine.wait()
        for found, expected in zip(self.bases, self.expected, strict=True):
            check_equal(found, expected)

    def some(self):
        place = self.random.randrange(2), self.random.randrange(len(self.mine[0]))
        return place, self.theirs[place[0]][place[1]]

    def data(self, place):
        if place in self.held and self.random.random() < 0.5:
            return self.held[place]
        data = self.engine.data(self.mine[place[0]][place[1]], resident=self.resident)
        if self.random.random() < 0.5:
            self.held[place] = data
        return data

    def submit(self):
        name = self.random.choice(NAMES)
        body, access = BODIES[name]
        chosen = [self.some() for _ in access]
        on_host, *others = CODELETS[name]
        codelet = on_host if self.random.random() < 0.3 else self.random.choice(others)
        operands = [
            getattr(self.data(place), mode)()
            for (place, _), mode in zip(chosen, access, strict=True)
        ]
        arrays = [array for _, array in chosen]
        if len(arrays) == 2 and arrays[0].base is arrays[1].base:
            if np.shares_memory(*arrays):
                with pytest.raises(quadriga.InvalidArgument):
                    self.engine.submit(codelet, *operands)
                return
            if np.may_share_memory(*arrays):
                return  # refused if the engine can't tell them apart
        if len(arrays) == 2 and chosen[0][0][0] == chosen[1][0][0]:
            return
        self.written.append(operands[-1].data)
        device = None if codelet is on_host else self.random.choice([None, *self.devices])
        future = self.engine.submit(codelet, *operands, device=device)
        self.apply(future, body, [place for place, _ in chosen], access[-1])

    def call(self):
        (place, array), (other, result) = self.some(), self.some()
        if array.ndim != 2 or result.ndim != 2 or place[0] == other[0]:
            return
        left = np.ones((result.shape[0], array.shape[0]))
        right = np.ones((array.shape[1], result.shape[1]))
        given = self.data(place) if self.random.random() < 0.5 else self.mine[place[0]][place[1]]
        out = self.data(other) if self.random.random() < 0.5 else self.mine[other[0]][other[1]]
        half = linalg.matmul(left, given, engine=self.engine)
        linalg.matmul(half, right, out=out, engine=self.engine)
        self.apply(None, lambda x, y: np.copyto(y, x.sum()), [place, other])
        self.written.append(self.data(other))
        future = self.engine.submit(CODELETS["shift"][1], self.written[-1].update())
        self.apply(future, shift, [other])

    def write(self):
        self.engine.wait()
        if not self.resident:
            self.overwrite()

    def overwrite(self):
        place, array = self.some()
        value = self.random.randrange(9)
        self.mine[place[0]][place[1]][...] = value
        array[...] = value
        self.note_all()

    def on_host(self):
        place, array = self.some()
        mode = self.random.choice(["r", "w", "rw"])
        with self.data(place).on_host(mode) as found:
            if mode != "w":
                check_equal(found, array)
            if mode == "w":
                found[...] = 3
                self.apply(None, lambda x: x.fill(3), [place])
            if mode == "rw":
                found += 1
                self.apply(None, lambda x: np.add(x, 1, out=x), [place])

    def forget(self):
        if self.held:
            self.held.pop(self.random.choice(sorted(self.held)))

    def wait(self):
        if self.random.random() < 0.5:
            self.engine.wait()
            self.note_all()
            return
        place, array = self.some()
        data = self.data(place)
        data.wait()
        check_equal(self.mine[place[0]][place[1]], array)

    def apply(self, future, body, places, mode="update"):
        """Runs a body by NumPy, the last of whose operands is written; a task's has its future."""
        body(*[self.theirs[base][view] for base, view in places])
        self.done.append((future, body, places, mode))

    def note_all(self):
        """All tasks have ended: none of them can be cancelled any more."""
        self.before = [array.copy() for array in self.expected]
        self.done = []
        self.written = []  # so that what is lost stays known

    def cancel(self):
        self.engine.cancel()
        with contextlib.suppress(quadriga.Cancelled):
            self.engine.wait()
        for array, before in zip(self.expected, self.before, strict=True):
            array[...] = before
        gone = []
        for future, body, places, mode in self.done:
            *read, (base, view) = places
            if future is not None and isinstance(future.exception(), quadriga.Cancelled):
                self.losses[base][view][...] = True
                gone.append(places[-1])
                continue
            assert not any(self.losses[one][each].any() for one, each in read)
            if mode == "commute" and self.losses[base][view].any():
                continue  # it ran before another one of its group, which was cancelled
            assert mode == "write" or not self.losses[base][view].any()
            body(*[self.theirs[one][each] for one, each in places])
            self.losses[base][view][...] = False
        for found, expected, lost in zip(self.bases, self.expected, self.lost, strict=True):
            check_equal(found[~lost], expected[~lost])
        self.repaired = {0, 1}  # also where only what brings views up to date was cancelled
        self.look_at_losses()
        for base in sorted(self.repaired):
            if self.lost[base].any():
                self.random.shuffle(gone)
                for place in gone[: self.random.randrange(4)]:
                    if place[0] == base:
                        self.repair(place)
                self.look_at_losses()
            self.repair((base, 0))
        self.repaired.clear()
        with contextlib.suppress(quadriga.Cancelled):
            self.engine.wait()
        self.look_at_losses()
        self.note_all()

    def look_at_losses(self):
        """What is lost is refused, by tasks and on the host; the rest is what it was, or refused as
        well, while something that overlaps it is lost or was since it was written as a whole."""
        for _ in range(3):
            place, array = self.some()
            if self.losses[place[0]][place[1]].any():
                with pytest.raises(quadriga.Cancelled), self.data(place).on_host("r"):
                    pass
                future = self.engine.submit(LOOK, self.data(place).read())
                assert isinstance(future.exception(), quadriga.Cancelled)
                continue
            may_refuse = place[0] in self.repaired
            try:
                with self.data(place).on_host("r") as found:
                    check_equal(found, array)
            except quadriga.Cancelled:
                assert may_refuse
            future = self.engine.submit(LOOK, self.data(place).read())
            if future.exception() is None or not may_refuse:
                assert future.result() == array.sum()

    def repair(self, place):
        """Writes what is lost."""
        base, view = place
        if self.random.random() < 0.5:
            with self.data(place).on_host("w") as found:
                found[...] = 5
        else:
            self.engine.submit(FILL, self.data(place).write())
        self.theirs[base][view][...] = 5
        self.losses[base][view][...] = False


def run_batches(options, firsts, core=None):
    """Runs the programs from each of these seeds on, on an engine for each."""
    everywhere = os.sched_getaffinity(0)
    end = FIRST + PROGRAMS
    for number, first in enumerate(firsts):
        # Threads of an engine inherit it.
        os.sched_setaffinity(0, everywhere if core is None or number % 4 == 3 else {core})
        with quadriga.Engine(**options, seed=first + 1) as engine:
            for seed in range(first, min(first + ON_AN_ENGINE, end)):
                try:
                    Program(seed, engine).run(20 + seed % 40)
                except BaseException as error:
                    count = seed - first + 1
                    error.add_note(
                        f"QUADRIGA_TEST_SEED={first} QUADRIGA_TEST_PROGRAMS={count} repeats it"
                    )
                    raise


def check_that_devices_work(options):
    """Or programs would say nothing of their memory: one run has copies both ways."""
    with quadriga.Engine(**options, seed=1) as engine:
        for seed in range(ON_AN_ENGINE):
            Program(seed, engine).run(30)
        many = [link for link in engine.counters().links if link.copies > 20]
        assert {link.source_name == "host" for link in many} == {True, False}


def run_share(where, firsts, core):
    """What a process of several does: machines can't be sent there."""
    run_batches(OPTIONS[where], firsts, core)


OPTIONS = {**ENGINES, "gpus": {"devices": "auto"}}


def check(where):
    if where != "cpu":
        check_that_devices_work(OPTIONS[where])
    firsts = range(FIRST, FIRST + PROGRAMS, ON_AN_ENGINE)
    if PROGRAMS < MANY or where == "gpus":
        run_batches(OPTIONS[where], firsts)
        return
    # What was forked from threads would keep their locks.
    start = multiprocessing.get_context("spawn").Process
    cores = sorted(os.sched_getaffinity(0))
    processes = [
        start(target=run_share, args=(where, firsts[index :: len(cores)], core))
        for index, core in enumerate(cores)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(cores)


@pytest.mark.parametrize("where", ENGINES)
def test_programs_give_what_numpy_gives(where):
    check(where)


@on_gpu
def test_programs_on_gpus():
    check("gpus")


@pytest.mark.parametrize("name", BODIES)
def test_the_sources_for_gpus_do_what_the_bodies_do(name, tmp_path):
    body, access = BODIES[name]
    base = np.arange(144.0).reshape(12, 12) % 9
    for view in (base[2:5, 3:7], base.T):
        given = [np.arange(1.0, 6.0)] * (len(access) - 1)
        expected = view.copy()
        body(*given, expected)
        run_on_host(SOURCES[name], tmp_path, [*given, view], access)
        check_equal(view, expected)


@pytest.mark.parametrize("name", BODIES)
def test_the_sources_compile_for_gpus(name):
    access = BODIES[name][1]
    assert compile_for_gpu(SOURCES[name], [np.ones(3)] * len(access), access).code
