# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_returns.py: kernels that return arrays, whose size nobody knows before.
"""What a kernel returns is a field: adopted on cores, copied within the device elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import fft

import quadriga
from quadriga.pipeline import Chunk, Through

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]


def signals(count: int) -> Iterator[dict[str, np.ndarray]]:
    random = np.random.default_rng(3)
    for rows in random.integers(1, 40, count):
        yield {"x": random.standard_normal((rows, 16)).astype("c8")}


def bytes_home(pipeline: quadriga.Pipeline) -> int:
    links = pipeline.engine.counters().links
    return sum(link.bytes for link in links if link.target_name == "host")


@pytest.mark.parametrize("devices", DEVICES)
def test_a_kernel_returns_a_field_of_a_size_that_its_content_decides(devices: str) -> None:
    pipeline = quadriga.Pipeline(devices=devices)
    pipeline.source({"x": np.arange(n, dtype="i4")} for n in range(60))
    pipeline.kernel(lambda x: x[x % 3 == 0], returns="thirds")
    for number, chunk in enumerate(pipeline.results()):
        wanted = np.arange(0, number, 3, dtype="i4")
        np.testing.assert_array_equal(chunk["thirds"], wanted)
        assert chunk["thirds"].dtype == np.int32


@pytest.mark.parametrize("devices", DEVICES)
def test_a_spectrometer_of_kernels_that_return(devices: str) -> None:
    """`fft(axis=0)` may give swapped strides; a field that is returned again replaces the old."""

    def unpack(array, x):
        x[...] = array[..., 0] + 1j * array[..., 1]

    def twiddle(x):
        x *= np.exp(-2j * np.pi * np.outer(np.arange(8), np.arange(4)) / 32)

    random = np.random.default_rng(5)
    given = [random.integers(-8, 8, (8, 4, 2)).astype("i1") for _ in range(20)]
    sky = quadriga.Pipeline(devices=devices).source(iter(given))
    sky.kernel(unpack, name="unpack", temporaries={"x": lambda c: ((8, 4), "c8")})
    sky.kernel(lambda x: np.asfortranarray(fft.fft(x, axis=0)), arrays="cupy", returns="x")
    sky.kernel(twiddle, updates=["x"])
    sky.kernel(lambda x: abs(fft.fft(x, axis=1)) ** 2, returns="spectrum")
    for chunk in sky.results(in_order=True):
        x = given[chunk.number].astype("f4")
        wanted = abs(fft.fft((x[..., 0] + 1j * x[..., 1]).reshape(-1))) ** 2
        np.testing.assert_allclose(chunk["spectrum"].T.reshape(-1), wanted, rtol=1e-3, atol=1e-2)
        assert "x" not in chunk


def test_on_cores_a_returned_array_is_adopted_where_it_lies() -> None:
    made = []

    def turned(x):
        made.append(np.asfortranarray(2 * x))
        return made[-1]

    pipeline = quadriga.Pipeline(devices="cpu:1").source(signals(5)).kernel(turned, returns="y")
    for chunk in pipeline.results():
        assert any(chunk["y"] is each for each in made)


def test_only_what_is_returned_is_copied_home() -> None:
    pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB")
    pipeline.source({"x": np.zeros(10_000)} for _ in range(10))
    pipeline.kernel(lambda x: x[:3] + 1, returns={"few": lambda chunk: chunk["x"].nbytes})
    for chunk in pipeline.results():
        assert chunk["few"].tolist() == [1, 1, 1]
    assert bytes_home(pipeline) == 10 * 3 * 8


@pytest.mark.parametrize("devices", DEVICES)
def test_several_fields_views_and_scalars_are_returned(devices: str) -> None:
    pipeline = quadriga.Pipeline(devices=devices).source(signals(20))
    pipeline.kernel(lambda x: (x[::2], x, np.abs(x).max()), returns=["half", "same", "peak"])
    pipeline.kernel(lambda same: same + 1, updates=(), returns="more")
    for chunk in pipeline.results():
        np.testing.assert_array_equal(chunk["half"], chunk["x"][::2])
        np.testing.assert_array_equal(chunk["more"], chunk["x"] + 1)
        assert chunk["peak"] == abs(chunk["x"]).max()
        assert not np.shares_memory(chunk["same"], chunk["x"])


@pytest.mark.parametrize("devices", DEVICES)
def test_stages_behind_see_what_was_returned(devices: str) -> None:
    def negate(y):
        np.negative(y, out=y)

    pipeline = quadriga.Pipeline(devices=devices)
    pipeline.source(Through(c, ["twice", "negate", "sum"]) for c in signals(20))
    pipeline.kernel(lambda x: 2 * x, name="twice", returns="y").kernel(negate, updates=["y"])
    pipeline.kernel(lambda y: y[:1], name="unused", returns="z")
    pipeline.map(lambda chunk: {"sum": np.array([chunk["y"].sum()])}, name="sum")
    for chunk in pipeline.results():
        np.testing.assert_allclose(chunk["sum"], -2 * chunk["x"].sum(), rtol=1e-3, atol=1e-3)
        assert "z" not in chunk


def test_the_virtual_clock_runs_them_too() -> None:
    machine = quadriga.Machine.parse("emulated:2,memory=1MiB,h2d=1GB/s,d2h=1GB/s")
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine).source(signals(30))
        cost = quadriga.Cost.of_seconds(1e-5)
        pipeline.kernel(lambda x: x[:1], returns="first", cost=cost)
        for chunk in pipeline.results():
            np.testing.assert_array_equal(chunk["first"], chunk["x"][:1])


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda x: None, {}, "returns 'y' as NoneType; expected an array"),
        (lambda x: x, {"returns": {"y": 8}}, "'y' of chunk 0 has .* bytes.* 8 "),
        (lambda x: (x, x, x), {"returns": ["y", "z"]}, "returns 3 .* expected 2"),
        (lambda x: np.array([{}]), {}, "hold Python objects"),
    ],
)
def test_what_cant_be_a_field_is_named(devices: str, function, options, message: str) -> None:
    pipeline = quadriga.Pipeline(devices=devices).source(signals(3))
    pipeline.kernel(function, name="makes", **{"returns": "y", **options})
    with pytest.raises(quadriga.Error, match=message) as raised:
        pipeline.run()
    named = " ".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert re.search(r"stage 'makes' (failed )?at chunk 0", named)


def test_failures_are_skipped() -> None:
    def picky(x):
        if len(x) % 2:
            raise ValueError("odd")
        return x[:1]

    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB", on_error="skip")
    pipeline.source(signals(30)).kernel(picky, returns="y")
    pipeline.kernel(lambda y: y + 1, returns="y")
    for chunk in pipeline.results():
        np.testing.assert_array_equal(chunk["y"], chunk["x"][:1] + 1)
    assert len(pipeline.failures) == sum(len(c["x"]) % 2 for c in signals(30))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"returns": 3}, "returns is 3"),
        ({"returns": []}, "returns is \\[\\]"),
        ({"returns": "y", "writes": {"y": lambda c: (1, "f8")}}, "'y' is .* twice"),
        ({"returns": "y", "cuda": quadriga.CudaSource("", "k")}, "CudaSource returns nothing"),
    ],
)
def test_wrong_arguments_are_named(options, message: str) -> None:
    with pytest.raises(quadriga.Error, match=message):
        quadriga.Pipeline(devices="cpu:1").kernel(lambda x: x, **options)


def test_memory_stays_within_what_is_stated() -> None:
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB", host_memory="1MiB")
    pipeline.source({"x": np.full(5_000, float(n))} for n in range(60))
    pipeline.kernel(lambda x: x[:1000], returns={"y": "8000"})
    numbers = [chunk["y"][0] for chunk in pipeline.results()]
    assert numbers == list(range(60))
    assert pipeline.stats().most_host_bytes <= 2**20


def test_fields_of_a_chunk() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").source(signals(1))
    pipeline.kernel(lambda x: x[0], returns="y")
    (chunk,) = pipeline.results()
    assert isinstance(chunk, Chunk)
    assert set(chunk) == {"x", "y"}
