# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_reduce.py: results of all chunks, reduced on devices, beside NumPy's.
"""Parts stay on devices; one result comes home at the end."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest
from gpus_of_tests import on_gpu

import quadriga
from quadriga.pipeline.reduction import Named

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]
OPS = ["sum", "mean", "max", "min"]


def frames(dtype: str, count: int = 40) -> list[np.ndarray]:
    random = np.random.default_rng(11)
    lengths = random.integers(0, 9, count)
    lengths[0] = 3
    return [random.integers(0, 100, (n, 5, 7)).astype(dtype) for n in lengths]


def reduced(devices: object, chunks: list[np.ndarray], op: object, **options: object):
    pipeline = quadriga.Pipeline(devices=devices).source({"x": x} for x in chunks)
    assert pipeline.reduce("x", op, **options) is pipeline
    assert pipeline.reduced == {}
    assert pipeline.run().chunks == len(chunks)
    return pipeline.reduced["x"]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8", "?"])
@pytest.mark.parametrize("op", OPS)
def test_it_is_what_numpy_says_of_all_chunks(devices: str, dtype: str, op: str) -> None:
    chunks = frames(dtype)
    wanted = getattr(np, op)(np.concatenate(chunks), axis=0)
    found = reduced(devices, chunks, op)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("devices", DEVICES)
def test_axes(devices: str) -> None:
    chunks = frames("f8")
    joined = np.concatenate(chunks)
    np.testing.assert_allclose(reduced(devices, chunks, "sum", axis=None), joined.sum())
    found = reduced(devices, chunks, "mean", axis=(0, -1))
    np.testing.assert_allclose(found, joined.mean(axis=(0, 2)))
    same = [chunk for chunk in chunks if len(chunk) == 3]
    np.testing.assert_allclose(reduced(devices, same, "max", axis=()), np.max(same, axis=0))
    np.testing.assert_allclose(reduced(devices, same, "mean", axis=()), np.mean(same, axis=0))
    assert reduced(devices, frames("u1"), "sum", dtype="f4").dtype == np.float32


@pytest.mark.parametrize("devices", DEVICES)
def test_two_functions_of_ones_own(devices: str) -> None:
    def count(x, counts):
        counts += np.bincount(x.reshape(-1), minlength=100)

    def join(counts, others):
        counts += others

    chunks = frames("u1")
    found = reduced(devices, chunks, (count, join), initial=np.zeros(100, "i8"))
    np.testing.assert_array_equal(found, np.bincount(np.concatenate(chunks).reshape(-1), None, 100))


@pytest.mark.parametrize("devices", DEVICES)
def test_several_of_fields_that_never_leave_their_device(devices: str) -> None:
    def square(x, y):
        y[...] = x * x

    pipeline = quadriga.Pipeline(devices=devices)
    pipeline.source({"x": x} for x in frames("f8"))
    pipeline.kernel(square, reads=["x"], temporaries={"y": lambda c: (c["x"].shape, "f8")})
    pipeline.reduce("y", "max", name="most").reduce("x", "min")
    pipeline.kernel(lambda y: y[y > 2500], returns="large").reduce("large", "sum")
    seen = list(pipeline.results())
    joined = np.concatenate(frames("f8"))
    np.testing.assert_array_equal(pipeline.reduced["most"], joined.max(axis=0) ** 2)
    np.testing.assert_array_equal(pipeline.reduced["x"], joined.min(axis=0))
    assert pipeline.reduced["large"] == (joined**2)[joined > 50].sum()
    assert all("y" not in chunk for chunk in seen)


def test_a_part_a_device_comes_home_and_nothing_else() -> None:
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB")
    pipeline.source({"x": x} for x in frames("f8", 200)).reduce("x").run()
    home = [each for each in pipeline.engine.counters().links if each.target_name == "host"]
    assert sum(link.bytes for link in home) == 2 * 5 * 7 * 8


@pytest.mark.parametrize("devices", DEVICES)
def test_chunks_that_failed_before_are_left_out(devices: str) -> None:
    def picky(x):
        if len(x) == 2:
            raise ValueError("two")

    pipeline = quadriga.Pipeline(devices=devices, on_error="skip")
    pipeline.source({"x": x} for x in frames("f8"))
    pipeline.kernel(picky, updates=["x"]).reduce("x", "mean").run()
    kept = np.concatenate([x for x in frames("f8") if len(x) != 2])
    np.testing.assert_allclose(pipeline.reduced["x"], kept.mean(axis=0))
    assert pipeline.failures


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_reduction_that_fails_is_no_result(devices: str, on_error: str) -> None:
    def add(x, total):
        if len(x) == 2:
            raise ValueError("two")
        total += x.sum(axis=0)

    pipeline = quadriga.Pipeline(devices=devices, on_error=on_error)
    pipeline.source({"x": x} for x in frames("f8"))
    pipeline.reduce("x", (add, np.add), initial=np.zeros((5, 7)), name="total")
    said = "two" if on_error == "raise" else "results of all chunks are lost"
    with pytest.raises(Exception, match=said):
        pipeline.run()
    assert pipeline.reduced == {}


def test_a_field_of_another_shape_is_named() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:2")
    pipeline.source({"x": np.zeros((2, n))} for n in (3, 4)).reduce("x")
    with pytest.raises(quadriga.InvalidArgument, match="chunk 1 gives a result 'x' of shape"):
        pipeline.run()


def test_the_virtual_clock_runs_them_too() -> None:
    machine = quadriga.Machine.parse("emulated:2,memory=1MiB,h2d=1GB/s,d2h=1GB/s")
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine).source({"x": x} for x in frames("i4"))
        pipeline.reduce("x", "sum", cost=quadriga.Cost.of_seconds(1e-5)).run()
    np.testing.assert_array_equal(pipeline.reduced["x"], np.concatenate(frames("i4")).sum(axis=0))


def test_many_chunks_have_their_parts_evicted_and_brought_back() -> None:
    """Two results of 400 KiB a device, whose chunks leave little room for them."""
    random = np.random.default_rng(4)
    chunks = [random.standard_normal((1, 50_000)) for _ in range(30)]
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB")
    pipeline.source({"x": x} for x in chunks).reduce("x").reduce("x", "max", name="most")
    with pytest.raises(quadriga.TooLarge):
        pipeline.run()
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=2MiB")
    pipeline.source({"x": x} for x in chunks).reduce("x").reduce("x", "max", name="most").run()
    np.testing.assert_allclose(pipeline.reduced["x"], np.sum(chunks, axis=(0, 1)))
    np.testing.assert_array_equal(pipeline.reduced["most"], np.max(chunks, axis=(0, 1)))


class _Part:
    """A reduction and a part, without a pipeline."""

    def __init__(self, op: str, axis: object, x: np.ndarray) -> None:
        self.reduction = Named("r", "x", op, axis, None, "cupy", None)  # type: ignore[arg-type]
        layout = self.reduction.layout = self.reduction.shape_of(x.shape, x.dtype)
        self.part = np.empty(layout.shape, layout.dtype)
        self.reduction.begin(self.part.ctypes.data)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("axis", [0, (), None, (1, 2)])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("op", OPS)
def test_the_variant_of_gpus_says_the_same(library: str, op: str, axis, dtype: str) -> None:
    """By libraries with the functions that it calls, on the host: NumPy has CuPy's."""
    module = pytest.importorskip(library)
    convert = module.from_numpy if library == "torch" else np.asarray
    x = np.random.default_rng(2).integers(0, 100, (4, 5, 6)).astype(dtype)
    host, device = _Part(op, axis, x), _Part(op, axis, x)
    if library == "torch" and host.part.dtype.kind == "u" and host.part.dtype.itemsize > 1:
        pytest.skip("PyTorch adds no unsigned numbers of 64 bits")
    host.reduction._on_host(x, host.part, **host.reduction.parameters(x.shape))
    device.reduction._on_device(
        convert(x), convert(device.part), **device.reduction.parameters(x.shape)
    )
    np.testing.assert_allclose(device.part, host.part, rtol=1e-6)
    assert device.reduction.count == host.reduction.count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "median"), "op is 'median'; expected one of 'sum'"),
        ((3,), "field is 3"),
        (("x", (np.add, np.add)), "needs initial="),
        (("x", "sum", {"initial": 0}), "for two functions"),
        (("x", "sum", {"axis": "rows"}), "axis is 'rows'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message: str) -> None:
    options = arguments[-1] if isinstance(arguments[-1], dict) else {}
    plain = [each for each in arguments if not isinstance(each, dict)]
    with pytest.raises(quadriga.Error, match=message):
        quadriga.Pipeline(devices="cpu:1").reduce(*plain, **options)


def test_names_are_used_once() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").reduce("x")
    with pytest.raises(quadriga.InvalidArgument, match="give this one a name="):
        pipeline.reduce("x", "max")


def test_an_axis_that_there_isnt_is_named() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").source([{"x": np.zeros(3)}]).reduce("x", axis=1)
    with pytest.raises(quadriga.InvalidArgument, match="axis 1 of field 'x', which has 1 axes"):
        pipeline.run()


def of_library(library: str) -> Iterator[dict[str, np.ndarray]]:
    importlib.import_module(library)
    yield from ({"x": x} for x in frames("u1"))


@on_gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("op", OPS)
def test_on_gpus(library: str, op: str) -> None:
    pytest.importorskip(library)
    pipeline = quadriga.Pipeline(devices="cuda").source(of_library(library))
    pipeline.reduce("x", op, dtype="f8", arrays=library).run()
    wanted = getattr(np, op)(np.concatenate(frames("u1")), axis=0)
    np.testing.assert_allclose(pipeline.reduced["x"], wanted)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_an_extreme_of_no_elements_is_none(devices: str, op: str) -> None:
    pipeline = quadriga.Pipeline(devices=devices).source(np.zeros((0, 3)) for _ in range(4))
    pipeline.reduce("array", op).reduce("array", "sum", name="sum")
    pipeline.reduce("array", op, axis=1, name="rows").run()
    assert pipeline.reduced["sum"].tolist() == [0, 0, 0]
    assert pipeline.reduced["rows"].shape == (0,)
    assert "array" not in pipeline.reduced
    with pytest.raises(ValueError, match="zero-size array"):  # as of all chunks, concatenated
        getattr(np, op)(np.zeros((0, 3)), axis=0)
    with pytest.raises(quadriga.InvalidArgument, match="'array': it is a maximum or minimum of no"):
        pipeline.reduced["array"]


def test_an_extreme_of_some_empty_chunks_is_that_of_the_others() -> None:
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB")
    pipeline.source(np.full((n % 2, 3), -float(n)) for n in range(6)).reduce("array", "max").run()
    assert pipeline.reduced["array"].tolist() == [-1, -1, -1]


def test_a_result_that_is_not_there_says_why() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").source(iter(())).reduce("array", "sum")
    with pytest.raises(quadriga.InvalidArgument, match="'array': the pipeline hasn't run yet"):
        pipeline.reduced["array"]
    pipeline.run()
    with pytest.raises(quadriga.InvalidArgument, match="'array': no chunk came, or the run hasn't"):
        pipeline.reduced["array"]
    with pytest.raises(quadriga.InvalidArgument, match="'x': no reduce.. makes it; they make 'ar"):
        pipeline.reduced["x"]
    assert pipeline.reduced == {}
    assert pipeline.reduced.get("array") is None
