# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline.py: pipelines: results, orders, failures, and those who leave.
"""Streams of chunks of unequal size, on cores and on emulated devices."""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import quadriga
from quadriga.pipeline import Chunk

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]


def chunks_of(count: int, seed: int = 1) -> Iterator[dict[str, object]]:
    sizes = np.random.default_rng(seed).integers(1, 2000, count)
    for number, size in enumerate(sizes):
        yield {"x": np.full(size, float(number)), "name": f"chunk {number}"}


def double(x, y):
    y[:] = 2 * x


def increment(y):
    y += 1


def like_x(chunk: Chunk) -> tuple[tuple[int, ...], str]:
    return chunk["x"].shape, "f8"


def doubling(devices: str, count: int = 50, **options: object) -> quadriga.Pipeline:
    pipeline = quadriga.Pipeline(devices=devices, **options)
    pipeline.source(chunks_of(count))
    pipeline.kernel(double, reads=["x"], writes={"y": like_x})
    return pipeline.kernel(increment, updates=["y"])


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("in_order", [True, False])
def test_results_are_what_kernels_made_of_each_chunk(devices: str, in_order: bool) -> None:
    seen = []
    for chunk in doubling(devices).results(in_order=in_order):
        assert chunk["y"].shape == chunk["x"].shape
        assert (chunk["y"] == 2 * chunk.number + 1).all()
        assert chunk["name"] == f"chunk {chunk.number}"
        seen.append(chunk.number)
    assert sorted(seen) == list(range(50))
    assert not in_order or seen == sorted(seen)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("mode", ["parallel", "serial", "serial_in_order"])
def test_bodies_see_results_and_add_fields(devices: str, mode: str) -> None:
    seen = []
    lock = threading.Lock()

    def mean(chunk: Chunk) -> dict[str, np.ndarray]:
        return {"mean": np.array([chunk["y"].mean()])}

    def note(chunk: Chunk) -> None:
        with lock:
            seen.append((chunk.number, chunk["mean"][0]))

    pipeline = doubling(devices)
    pipeline.map(mean).kernel(double, reads=["mean"], writes={"twice": lambda c: (1, "f8")})
    stats = pipeline.map(note, mode=mode).run()
    assert stats.chunks == 50
    assert sorted(seen) == [(n, 2 * n + 1) for n in range(50)]
    assert mode != "serial_in_order" or seen == sorted(seen)
    passed = {stage.chunks for stage in stats.stages if not stage.kind.startswith("copy")}
    assert passed == {50}
    assert 0 < stats.bound_seconds <= stats.seconds * 1.01
    assert "limits" in str(stats)


@pytest.mark.parametrize("devices", DEVICES)
def test_a_body_that_raises_is_named_and_chunks_before_arrive(devices: str) -> None:
    def check(chunk: Chunk) -> None:
        if chunk.number == 23:
            raise ValueError("no good")

    seen = []
    with pytest.raises(ValueError, match="no good") as raised:
        for chunk in doubling(devices).map(check).results():
            seen.append(chunk.number)
    assert seen == list(range(23))
    assert raised.value.__notes__ == ["in stage 'check' at chunk 23"]


@pytest.mark.parametrize("devices", DEVICES)
def test_a_kernel_that_raises_is_named(devices: str) -> None:
    def picky(x):
        if x[0] == 7:
            raise ZeroDivisionError("a seven")

    pipeline = quadriga.Pipeline(devices=devices).source(chunks_of(20))
    with pytest.raises(ZeroDivisionError, match="a seven") as raised:
        pipeline.kernel(picky, updates=["x"]).run()
    assert raised.value.__notes__ == ["in stage 'picky' at chunk 7"]


@pytest.mark.parametrize("devices", DEVICES)
def test_failures_are_skipped_and_kept(devices: str) -> None:
    def picky(chunk: Chunk) -> None:
        if chunk.number % 10 == 3:
            raise ValueError(chunk.number)

    pipeline = doubling(devices, on_error="skip").map(picky)
    seen = [chunk.number for chunk in pipeline.results()]
    assert seen == [n for n in range(50) if n % 10 != 3]
    assert sorted(each.chunk for each in pipeline.failures) == [3, 13, 23, 33, 43]
    assert all(isinstance(each.error, ValueError) for each in pipeline.failures)
    assert pipeline.stats().failed == 5


@pytest.mark.parametrize("devices", DEVICES)
def test_a_source_that_raises_ends_the_run_after_its_chunks(devices: str) -> None:
    def broken() -> Iterator[np.ndarray]:
        for number in range(9):
            yield np.full(10, float(number))
        raise OSError("the file ends too early")

    seen = []
    pipeline = quadriga.Pipeline(devices=devices).source(broken())
    pipeline.kernel(increment, updates=["array"])
    with pytest.raises(OSError, match="too early") as raised:
        for chunk in pipeline.results():
            seen.append(chunk.number)
    assert seen == list(range(9))
    assert raised.value.__notes__ == ["in the source"]


@pytest.mark.parametrize("devices", DEVICES)
def test_who_leaves_stops_the_source(devices: str) -> None:
    asked = 0

    def endless() -> Iterator[np.ndarray]:
        nonlocal asked
        while True:
            asked += 1
            yield np.zeros(100)

    pipeline = quadriga.Pipeline(devices=devices, look_ahead=8).source(endless())
    pipeline.kernel(increment, updates=["array"])
    for chunk in pipeline.results():
        if chunk.number == 5:
            break
    asked_then = asked
    time.sleep(0.2)
    assert asked == asked_then


@pytest.mark.parametrize("blocks", [False, True])
def test_an_interrupt_leaves_within_a_second(blocks: bool) -> None:
    woken = threading.Event()

    def endless() -> Iterator[np.ndarray]:
        while True:
            if blocks:
                woken.wait(600)
            yield np.zeros(100)

    pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB").source(endless())
    pipeline.kernel(increment, updates=["array"])
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        pipeline.run()
    assert time.monotonic() - begin < 120, "a second, were the machine idle"
    woken.set()


def test_memory_stays_within_what_is_stated() -> None:
    pipeline = doubling("emulated:2,memory=1MiB", count=200, host_memory="64KiB", memory="40KiB")
    for chunk in pipeline.results():
        assert (chunk["y"] == 2 * chunk.number + 1).all()
    assert pipeline.stats().most_host_bytes <= 65536
    for device in pipeline.engine.counters().devices:
        assert device.most_bytes <= 40960


def test_a_chunk_that_cant_pass_is_refused_with_both_sizes() -> None:
    pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB", memory="100KiB")
    pipeline.source([np.zeros(20_000)]).kernel(increment, updates=["array"])
    with pytest.raises(quadriga.TooLarge, match=r"160000 bytes.*102400"):
        pipeline.run()


def test_constants_and_temporaries() -> None:
    weights = np.arange(4.0)

    def weigh(x, w, t, factor):
        t[:] = x * w[3] * factor

    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB").source(chunks_of(20))
    pipeline.kernel(
        weigh, reads=["x"], temporaries={"t": like_x}, constants={"w": weights, "factor": 2.0}
    )
    pipeline.kernel(double, reads=["t"], writes={"y": like_x})
    for chunk in pipeline.results():
        assert (chunk["y"] == 12 * chunk.number).all()
        assert "t" not in chunk


def test_the_virtual_clock_runs_them_too() -> None:
    machine = quadriga.Machine.parse("emulated:2,memory=1MiB,h2d=1GB/s,d2h=1GB/s")
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine).source(chunks_of(30))
        nothing = quadriga.Cost("nothing", 1, 1)
        pipeline.kernel(double, reads=["x"], writes={"y": like_x}, cost=nothing)
        for chunk in pipeline.results():
            assert (chunk["y"] == 2 * chunk.number).all()
        stats = pipeline.stats()
    assert stats.by_device[0] + stats.by_device[1] == 30
    assert stats.bound_seconds <= stats.seconds <= 1.2 * stats.bound_seconds


def test_many_tiny_chunks_leave_memory_flat() -> None:
    def tiny(count: int) -> Iterator[dict[str, int]]:
        for number in range(count):
            yield {"value": number}

    total = 0

    def add(chunk: Chunk) -> None:
        nonlocal total
        total += chunk["value"]

    def run(count: int) -> None:
        quadriga.Pipeline(devices="cpu:1").source(tiny(count)).map(add, mode="serial").run()

    run(2_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = 0
    count = int(os.environ.get("QUADRIGA_TEST_CHUNKS", "50000"))
    run(count)
    assert total == count * (count - 1) // 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000  # KiB


def test_an_estimate_tells_the_bound_and_what_limits_before_a_run() -> None:
    machine = quadriga.Machine.parse("emulated:1,memory=1GiB,h2d=1GB/s,d2h=1GB/s")
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine)
        pipeline.kernel(double, reads=["x"], writes={"y": like_x})
        like = [{"x": np.empty(1_000_000)} for _ in range(10)]
        with pytest.raises(quadriga.Unavailable, match="'double' has no cost"):
            pipeline.estimate(like)
        kernels = pipeline.estimate(like, {"double": 0.1})
        reading = pipeline.estimate(like, {"double": 0.1, "source": 0.5})
        with pytest.raises(quadriga.InvalidArgument, match="seconds of 'triple'"):
            pipeline.estimate(like, {"triple": 1.0})
    # Ten kernels, and a copy of 8 MB each way that nothing hides.
    assert kernels.seconds == pytest.approx(1.0 + 0.016, rel=1e-3)
    assert kernels.limit == "kernels of emulated0"
    assert kernels.one_device_more == pytest.approx(0.5 + 0.016, rel=1e-3)
    assert reading.seconds == pytest.approx(5.0)
    assert str(reading).endswith("source limits: one device more gains nothing")


def test_the_virtual_clock_counts_what_stages_on_the_host_take() -> None:
    machine = quadriga.Machine.parse("emulated:1,memory=1GiB,h2d=1GB/s,d2h=1GB/s;cpu:4")
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine, threads=2).source(chunks_of(40))
        cost = quadriga.Cost("seconds", 1, 0.001)
        pipeline.kernel(double, reads=["x"], writes={"y": like_x}, cost=cost)
        pipeline.map(lambda chunk: None, mode="serial", name="write")
        pipeline.takes("source", 0.01).takes("write", lambda chunk: 0.1 if chunk.number else 0)
        estimate = pipeline.estimate(chunks_of(40))
        stats = pipeline.run()
    assert stats.limit == estimate.limit == "write"
    assert estimate.seconds == pytest.approx(3.9)
    assert stats.bound_seconds == pytest.approx(3.9)
    assert 3.9 <= stats.seconds < 4.0
    assert stats.stages[-1].occupancy > 0.97


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.source(3), "iterable of chunks"),
        (lambda p: p.map(3), "function of a chunk"),
        (lambda p: p.map(len, mode="sorted"), "mode is 'sorted'"),
        (lambda p: p.kernel(double, reads="x"), "list of names"),
        (lambda p: p.kernel(double, reads=["x"], writes={"y": 3}), "function of the chunk"),
        (lambda p: p.run(), "no source"),
        (lambda p: p.takes("write", 1), "expected one of source"),
        (lambda p: p.takes("source", -1), "what 'source' takes is -1"),
        (lambda p: setattr(p, "order", "random"), "order is 'random'"),
    ],
)
def test_wrong_arguments_are_named(call, message: str) -> None:
    with pytest.raises(quadriga.InvalidArgument, match=message):
        call(quadriga.Pipeline(devices="cpu:1"))


def test_devices_that_there_arent_are_named_at_once() -> None:
    with pytest.raises(quadriga.InvalidArgument, match="device list: 'foo'"):
        quadriga.Pipeline(devices="foo")
    with pytest.raises(quadriga.InvalidType, match="devices is 3"):
        quadriga.Pipeline(devices=3)


def test_a_field_that_is_missing_is_named() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").source([np.zeros(3)])
    with pytest.raises(KeyError, match="has no field 'z'; it has 'array'"):
        pipeline.kernel(increment, updates=["z"]).run()


def test_read_only_arrays_are_not_changed() -> None:
    given = np.frombuffer(bytes(80), dtype=np.float64)
    pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB").source([given])
    pipeline.kernel(increment, updates=["array"])
    with pytest.raises(quadriga.InvalidArgument, match="'array' of chunk 0 is read-only"):
        pipeline.run()
    assert not given.any()


def test_shapes_follow_from_what_the_source_gives() -> None:
    pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB").source([{"x": np.ones(3)}])
    pipeline.map(lambda chunk: {"n": np.ones(2)})
    pipeline.kernel(double, reads=["x"], writes={"y": lambda chunk: (chunk["n"].shape, "f8")})
    with pytest.raises(quadriga.InvalidArgument, match="'y' follows .* no field 'n'"):
        pipeline.run()


def test_inside_of_an_engine_it_runs_there() -> None:
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        assert quadriga.Pipeline().engine is engine
        assert quadriga.Pipeline(devices="cpu:1").engine is not engine


def test_a_failed_run_leaves_nothing_behind() -> None:
    closed = []

    def source() -> Iterator[np.ndarray]:
        try:
            while True:
                yield np.zeros(4)
        finally:
            closed.append(True)

    def broken(_: object) -> None:
        raise KeyError("no")

    pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB").source(source()).map(broken)
    with pytest.raises(KeyError, match="no"):
        pipeline.run()
    assert closed
    assert isinstance(pipeline.failures[0].error, KeyError)
    gone = weakref.ref(pipeline)
    del pipeline
    gc.collect()
    assert gone() is None


def test_memory_of_chunks_is_used_again() -> None:
    """By addresses: of what a source asks for, and of what kernels write."""
    seen: dict[str, set[int]] = {"x": set(), "y": set()}

    def source() -> Iterator[dict[str, np.ndarray]]:
        for number in range(100):
            x = quadriga.pipeline.empty((100, 50), "i4")
            x[:] = number
            yield {"x": x}

    pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB", look_ahead=4).source(source())
    pipeline.kernel(double, reads=["x"], writes={"y": lambda c: (c["x"].shape, "i4")})
    for chunk in pipeline.results():
        assert (chunk["y"] == 2 * chunk.number).all()
        for name, addresses in seen.items():
            addresses.add(chunk[name].ctypes.data)
    assert len(seen["x"] | seen["y"]) < 100
    assert not seen["x"] & {quadriga.pipeline.empty((100, 50), "i4").ctypes.data}
