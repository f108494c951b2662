# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_prefetch.py: batches on devices before they are asked for.
"""Emulated devices stand for GPUs, and their memory for a library's; the last tests need GPUs."""

import threading
import time
from collections import namedtuple

import numpy as np
import pytest
from arrays_of_tests import OnDevice, Pool
from gpus_of_tests import on_gpu

import quadriga
from quadriga import batches
from quadriga.errors import InvalidArgument, InvalidType

Pair = namedtuple("Pair", "x y")


class Emulated(batches.Home):
    """Arrays in the memory of emulated devices; counts them, and what was marked."""

    last = None

    def __init__(self, engine):
        kinds = [device.kind for device in engine.machine.devices]
        self.devices = tuple(i for i, kind in enumerate(kinds) if kind == "emulated")
        self.pools = [Pool(engine, device) for device in self.devices]
        self.made = []
        self.gate = threading.Event()
        self.gate.set()
        self.waits = 0
        Emulated.last = self

    def empty(self, device, shape, dtype):
        self.made.append(device)
        return self.pools[device].array(np.zeros(shape, dtype), order="C")

    def mark(self, device):
        def passed():
            self.waits += 1
            assert self.gate.wait(120)

        return passed


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setitem(batches.HOMES, "emulated", Emulated)
    with quadriga.Engine("emulated:2,memory=16MiB") as made:
        yield made


def loaded(iterable, engine, **options):
    return quadriga.prefetch(iterable, engine=engine, arrays="emulated", **options)


def numbered(count, size=1000):
    for number in range(count):
        yield {"x": np.full(size, float(number)), "number": number}


def settled(condition):
    """Whether a condition comes true within some seconds and then stays so for a while."""
    deadline = time.monotonic() + 240
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    return condition()


def test_batches_come_in_order_and_lie_on_the_devices_by_turns(engine):
    seen = []
    for batch in loaded(numbered(50), engine):
        assert isinstance(batch["x"], OnDevice)
        assert (batch["x"].view == batch["number"]).all()
        seen.append(batch["number"])
    assert seen == list(range(50))
    by_device = {task.name: task.tasks for task in engine.counters().devices}
    copies = 50 + len(Emulated.last.made)  # and one task for each array that was made
    assert sum(by_device.values()) == copies
    assert min(by_device[f"emulated{i}"] for i in (0, 1)) >= 25


def test_no_memory_beyond_the_batches(engine):
    for _ in loaded(numbered(40), engine, ahead=3):
        pass
    assert sorted(Emulated.last.made) == [0] * 4 + [1] * 4


def test_a_batch_stays_while_the_program_has_it(engine):
    for batch in loaded(numbered(12), engine):
        time.sleep(0.02)  # all that may be filled meanwhile is
        assert (batch["x"].view == batch["number"]).all()


def test_a_slot_is_filled_when_the_device_has_passed_what_was_queued(engine):
    iterator = loaded(numbered(30), engine, ahead=1)
    first = next(iterator)
    home = Emulated.last
    home.gate.clear()  # from here on the device is busy with what the program queued
    held = [next(iterator) for _ in range(3)]
    # The reader waits for the first batch's slot, which comes next.
    assert settled(lambda: home.waits == 1)
    assert (first["x"].view == 0).all()
    home.gate.set()
    assert [each["number"] for each in held] == [1, 2, 3]
    assert [each["number"] for each in iterator] == list(range(4, 30))


def test_only_so_many_batches_are_read_ahead(engine):
    asked = []

    def loader():
        for batch in numbered(100):
            asked.append(batch["number"])
            yield batch

    iterator = loaded(loader(), engine, ahead=2)
    next(iterator)
    assert settled(lambda: len(asked) == 2 * 3 + 1)  # three a device, and one that waits
    iterator.close()
    assert settled(lambda: len(asked) == 7)


def test_who_leaves_stops_the_reading_although_there_is_room(engine):
    asked = []

    def slow():
        for batch in numbered(100):
            time.sleep(0.05)
            asked.append(batch["number"])
            yield batch

    iterator = loaded(slow(), engine, ahead=20)
    next(iterator)
    iterator.close()
    then = len(asked)
    time.sleep(0.3)
    assert len(asked) == then


def test_batches_of_all_forms_keep_them(engine):
    random = np.random.default_rng(1)
    given = [
        random.random((3, 4)),
        (random.random(5).astype("f4"), [np.arange(6).reshape(2, 3), "name"], None),
        Pair(random.random((4, 4), np.float32).T, np.array(3.5)),
        {"strided": np.arange(24).reshape(4, 6)[::2, ::3], "empty": np.empty((0, 3))},
        [np.array([True, False]), np.array(["text", None], object)],
    ]

    def back(value):
        if isinstance(value, OnDevice):
            return value.view.copy()
        if isinstance(value, dict):
            return {key: back(each) for key, each in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(back, value))
        return type(value)(map(back, value)) if isinstance(value, (tuple, list)) else value

    found = [back(batch) for batch in loaded(given, engine)]
    for one, other in zip(found, given, strict=True):
        assert type(one) is type(other)
        np.testing.assert_equal(one, other)


def test_batches_of_changing_shapes(engine):
    sizes = np.random.default_rng(1).integers(0, 300, 40)
    batches = ((np.full(n, n), np.full(n, -n)) for n in sizes.tolist())
    for n, (x, y) in zip(sizes, loaded(batches, engine), strict=True):
        assert x.view.shape == y.view.shape == (n,)
        assert (x.view == n).all()
        assert (y.view == -n).all()


def test_an_array_that_comes_again_has_its_new_content(engine):
    reused = [np.zeros(100) for _ in range(8)]
    known = [engine.data(each) for each in reused]  # devices may keep what they have of these

    def loader():
        for number in range(60):
            reused[number % 8][:] = number
            yield reused[number % 8]

    for number, batch in enumerate(loaded(loader(), engine, ahead=1)):
        assert (batch.view == number).all()
    assert len(known) == 8


def test_what_the_loader_raises_comes_after_its_batches(engine):
    def broken():
        yield from numbered(5)
        raise OSError("the disk is gone")

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        for batch in loaded(broken(), engine):
            seen.append(batch["number"])
    assert seen == list(range(5))


def test_who_leaves_ends_the_thread(engine):
    before = threading.active_count()
    for batch in loaded(numbered(1000), engine):
        if batch["number"] == 3:
            break
    del batch
    assert settled(lambda: threading.active_count() <= before)


@pytest.mark.parametrize("arrays", ["cupy", "torch"])
def test_without_gpus_batches_are_read_ahead_as_they_are(arrays):
    given = [np.ones(3), (1, "two"), {"x": np.zeros(2)}]
    found = list(quadriga.prefetch(given, devices="cpu:1", arrays=arrays))
    assert all(one is other for one, other in zip(found, given, strict=True))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e: quadriga.prefetch([], arrays="jax"), InvalidArgument, "one of cupy, torch"),
        (lambda e: quadriga.prefetch(3, arrays="torch"), InvalidType, "iterable of batches"),
        (lambda e: loaded([], e, ahead=0), InvalidArgument, "ahead 0"),
        (lambda e: loaded([], e, devices="cpu:1"), InvalidArgument, "not both"),
    ],
)
def test_wrong_arguments_are_named(engine, call, error, message):
    with pytest.raises(error, match=message):
        call(engine)


@on_gpu
@pytest.mark.parametrize("arrays", ["cupy", "torch"])
def test_a_gpu_gets_batches_in_the_programs_order(arrays):
    library = pytest.importorskip(arrays)
    total = 0.0
    with quadriga.Engine("cuda:1,memory=256MiB") as engine:
        for batch in quadriga.prefetch(numbered(50, 1 << 20), engine=engine, arrays=arrays):
            x = batch["x"]
            for _ in range(20):  # longer than a copy: a slot filled too early would show
                x = x * 1.0
            total = total + library.abs(x - batch["number"]).max()
    assert float(total) == 0


@on_gpu
def test_a_data_loaders_workers_feed_a_gpu():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.arange(1000.0))
    loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=2)
    found = [x.cpu() for (x,) in quadriga.prefetch(loader, devices="cuda:1", arrays="torch")]
    assert torch.cat(found).tolist() == list(range(1000))


def test_results_come_home_while_the_program_goes_on(engine):
    """Each is sent when its mark has passed, and neither loop nor reading waits for that."""
    coming = []
    batches_ = loaded(numbered(30), engine)
    for batch in batches_:
        pool = Emulated.last.pools[0]
        if not coming:
            Emulated.last.gate.clear()
        if len(coming) < 2:  # slots are free only behind marks
            coming.append((batches_.to_host(pool.array(batch["x"].view * 2)), batch["number"]))
        if len(coming) == 2:
            break
    first, _ = coming[0]
    with pytest.raises(TimeoutError, match="isn't on its way yet"):
        first.result(0.05)
    Emulated.last.gate.set()
    batches_.close()
    for arriving, number in coming:
        np.testing.assert_array_equal(arriving.result(240), np.full(1000, 2.0 * number))


def test_many_results_come_home(engine):
    batches_ = loaded(numbered(40, 300), engine)
    coming = []
    for batch in batches_:
        made = Emulated.last.pools[batch["number"] % 2].array(batch["x"].view + 1, order="C")
        coming.append(batches_.to_host(made))
    for number, arriving in enumerate(coming):
        assert (arriving.result(240) == number + 1).all()
        assert arriving.result() is arriving.result()


def test_what_is_on_the_host_is_copied(engine):
    batches_ = loaded(numbered(1), engine)
    x = np.arange(4)
    assert batches_.to_host(x).result().tolist() == [0, 1, 2, 3]
    assert not np.shares_memory(batches_.to_host(x).result(), x)


def test_results_outlive_an_engine_of_the_loops_own(monkeypatch):
    monkeypatch.setitem(batches.HOMES, "emulated", Emulated)
    given = quadriga.prefetch(
        numbered(10), devices="emulated:1,memory=16MiB", arrays="emulated", ahead=1
    )
    coming = [given.to_host(Emulated.last.pools[0].array(b["x"].view, order="C")) for b in given]
    Emulated.last.pools.clear()
    assert [arriving.result(240)[0] for arriving in coming] == list(range(10))
