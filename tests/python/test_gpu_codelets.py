# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_gpu_codelets.py: users' codelets on a GPU; skipped where there is none.
import random
import threading
import time

import numpy as np
import pytest
from gpus_of_tests import on_gpu

import quadriga
from quadriga import nvrtc
from quadriga.errors import InvalidArgument, TaskFailed, Unavailable

pytestmark = on_gpu

AXPY = quadriga.CudaSource(
    """
    __device__ float2 operator*(float2 a, float2 b) {
      return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
    }
    __device__ float2& operator+=(float2& a, float2 b) {
      a.x += b.x;
      a.y += b.y;
      return a;
    }
    template <class T>
    __global__ void axpy(quadriga::Tile<const T> x, quadriga::Tile<T> y, T alpha) {
      const long long k = quadriga::thread_x();
      if (k < y.size()) y[k] += alpha * x[k];
    }
    """,
    parameters={"alpha": "float64"},
)
SLOW = """
__global__ void slow(quadriga::Tile<double> x, long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
  x(0, 0) += 1;
}
"""


def axpy(x, y, alpha):
    y += alpha * x


def of_type(source, kind):
    return quadriga.CudaSource(source.text, parameters={"alpha": kind})


@pytest.fixture
def source():
    try:
        nvrtc._Compiler()
    except Unavailable as error:
        pytest.skip(str(error))
    return AXPY


@pytest.fixture(params=["cupy", "torch"])
def arrays(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture
def engine():
    with quadriga.Engine("cuda:1,memory=256MiB") as made:
        yield made


def double_it(x):
    x *= 2


def add_one(x):
    x += 1


SHAPES = {
    "vector": lambda kind: np.ones(1000, kind),
    "c": lambda kind: np.ones((37, 53), kind),
    "fortran": lambda kind: np.ones((37, 53), kind, order="F"),
    "rows": lambda kind: np.ones((80, 53), kind)[3:40],
    "columns": lambda kind: np.ones((37, 90), kind)[:, 7:60],
    "every other": lambda kind: np.ones(2000, kind)[::2],
    "three": lambda kind: np.ones((3, 4, 5), kind),
    "one": lambda kind: np.ones((), kind),
    "none": lambda kind: np.ones((0, 4), kind),
}


def pair(shape, kind):
    random = np.random.default_rng(7)
    x, y = SHAPES[shape](kind), SHAPES[shape](kind)
    x[...] = random.integers(-9, 9, x.shape)
    y[...] = random.integers(-9, 9, y.shape)
    return x, y


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "int32", "int64", "int8"])
def test_sources_see_arrays_of_every_shape_and_type(engine, source, shape, kind):
    codelet = quadriga.Codelet(None, ["read", "update"], name="axpy", cuda=of_type(source, kind))
    x, y = pair(shape, kind)
    expected = y + np.array(2, kind) * x
    engine.submit(codelet, engine.data(x).read(), engine.data(y).update(), alpha=2)
    engine.wait()
    np.testing.assert_array_equal(y, expected)


def test_operands_of_both_orders_meet(engine, source):
    codelet = quadriga.Codelet(None, ["read", "update"], name="axpy", cuda=source)
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    y = np.zeros((3, 4))
    engine.submit(codelet, engine.data(x).read(), engine.data(y).update(), alpha=1.0)
    engine.wait()
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["float32", "float64", "complex128", "int32", "int8"])
def test_callables_see_arrays_of_every_shape_and_type(engine, arrays, shape, kind):
    codelet = quadriga.Codelet(None, ["read", "update"], cuda=axpy, arrays=arrays)
    x, y = pair(shape, kind)
    expected = y + np.array(2, kind) * x
    engine.submit(codelet, engine.data(x).read(), engine.data(y).update(), alpha=2)
    engine.wait()
    np.testing.assert_array_equal(y, expected)


def test_chains_of_all_variants_keep_their_order(source, arrays):
    """Sources, callables and bodies on the host, in tiles that don't fit the device together."""
    size, tiles = 64 * 1024, 24
    kinds = [
        quadriga.Codelet(None, ["read", "update"], name="axpy", cuda=source),
        quadriga.Codelet(None, ["read", "update"], cuda=axpy, arrays=arrays),
        quadriga.codelet(access=["read", "update"])(axpy),
        quadriga.codelet(access=["read", "update"], cuda=source)(axpy),
    ]
    choice = random.Random(5)
    values = np.random.default_rng(5).integers(-5, 5, (tiles, size)).astype(float)
    expected = values.copy()
    with quadriga.Engine("cuda:1,memory=4MiB") as engine:
        data = [engine.data(row) for row in values]
        for step in range(400):
            first, second = choice.sample(range(tiles), 2)
            alpha = choice.choice([-1.0, 1.0])
            codelet = kinds[step % len(kinds)]
            engine.submit(codelet, data[first].read(), data[second].update(), alpha=alpha)
            expected[second] += alpha * expected[first]
        engine.wait()
        assert all(each.tasks for each in engine.counters().devices)
    np.testing.assert_array_equal(values, expected)


def test_what_a_callable_raises_comes_back(engine, arrays):
    def fail(x):
        x += 1
        raise KeyError("on purpose")

    codelet = quadriga.Codelet(None, ["update"], cuda=fail, arrays=arrays)
    after = quadriga.Codelet(None, ["update"], cuda=lambda x: None, arrays=arrays)
    data = engine.data(np.ones(1000))
    future = engine.submit(codelet, data.update())
    engine.submit(after, data.update())
    with pytest.raises(KeyError, match="on purpose") as failure:
        future.result()
    assert failure.traceback[-1].name == "fail"
    with pytest.raises(KeyError):
        engine.wait()
    other = np.ones(1000)
    engine.submit(after, engine.data(other).update())
    engine.wait()


def test_results_of_callables_come_back(engine, arrays):
    codelet = quadriga.Codelet(None, ["read"], cuda=lambda x: float(x.sum()), arrays=arrays)
    future = engine.submit(codelet, engine.data(np.arange(5.0)).read())
    assert future.result(timeout=240) == 10


def test_a_callable_that_waits_holds_up_nothing_else(engine, source, arrays):
    """Also not the caller, which has the GIL while the callable doesn't."""
    entered, leave = threading.Event(), threading.Event()

    def wait(x):
        entered.set()
        assert leave.wait(60)
        x += 1

    slow = quadriga.Codelet(None, ["update"], cuda=wait, arrays=arrays)
    quick = quadriga.Codelet(None, ["read", "update"], name="axpy", cuda=source)
    held, x, y = np.zeros(10), np.ones(10), np.zeros(10)
    place = engine.data(held)
    waiting = engine.submit(slow, place.update())
    behind = engine.submit(slow, place.update())
    assert entered.wait(60)
    target = engine.data(y)
    source_data = engine.data(x)
    for _ in range(50):
        last = engine.submit(quick, source_data.read(), target.update(), alpha=1.0)
    last.result(timeout=240)
    assert not waiting.done() and not behind.done()
    leave.set()
    engine.wait()
    assert (held == 2).all() and (y == 50).all()


def test_tasks_end_when_what_they_queued_has(engine, source, arrays):
    slow = quadriga.CudaSource(SLOW, "slow", parameters={"cycles": "int64"}, grid=1, block=1)
    count = quadriga.Codelet(None, ["update"], name="slow", cuda=slow)
    double = quadriga.Codelet(None, ["update"], cuda=double_it, arrays=arrays)
    add_on_host = quadriga.codelet(access=["update"])(add_one)
    value = np.zeros(1)
    data = engine.data(value)
    for _ in range(3):
        engine.submit(count, data.update(), cycles=40_000_000)  # some 20 ms
        engine.submit(double, data.update())
        engine.submit(add_on_host, data.update())
    engine.wait()
    assert value[0] == 21


def test_launches_that_cuda_refuses_fail_their_task(engine, source):
    wide = quadriga.CudaSource(source.text, parameters={"alpha": float}, shared_bytes=1 << 30)
    codelet = quadriga.Codelet(None, ["read", "update"], name="axpy", cuda=wide)
    x, y = engine.data(np.ones(4)), engine.data(np.ones(4))
    with pytest.raises(TaskFailed, match="codelet 'axpy'.*shared memory"):
        engine.submit(codelet, x.read(), y.update(), alpha=1).result()
    with pytest.raises(TaskFailed):
        engine.wait()
    engine.wait()


def test_sources_that_do_not_compile_are_refused_when_submitted(engine, source):
    codelet = quadriga.Codelet(
        None, ["read"], name="nothing", cuda=quadriga.CudaSource("int x = y;")
    )
    with pytest.raises(InvalidArgument, match='"y" is undefined'):
        engine.submit(codelet, engine.data(np.ones(4)).read())


def test_bodies_without_a_cuda_variant_run_on_the_host(engine):
    y = np.ones(10)
    codelet = quadriga.codelet(access=["read", "update"])(axpy)
    engine.submit(codelet, engine.data(np.ones(10)).read(), engine.data(y).update(), alpha=2)
    engine.wait()
    assert (y == 3).all()


def test_codelets_with_both_variants_use_the_gpu(source):
    codelet = quadriga.codelet(access=["read", "update"], cuda=source)(axpy)
    x, y = np.ones(1000), np.ones(1000)
    with quadriga.Engine("cuda:1,memory=64MiB") as engine:
        a, b = engine.data(x), engine.data(y)
        for _ in range(20):
            engine.submit(codelet, a.read(), b.update(), alpha=1.0)
        engine.wait()
        ran = [(device.name, device.tasks) for device in engine.counters().devices]
        gpu = next(device.name for device in engine.machine.devices if device.kind == "cuda")
    assert [each for each in ran if each[1]] == [(gpu, 20)]
    assert (y == 21).all()


def test_launches_of_a_source_are_cheap(engine, source):
    """The driver makes them, without Python."""
    codelet = quadriga.Codelet(None, ["read", "update"], name="axpy", cuda=source)
    x, y = engine.data(np.ones(8)), engine.data(np.zeros(8))
    engine.submit(codelet, x.read(), y.update(), alpha=1.0).result()
    begin = time.perf_counter()
    for _ in range(2000):
        engine.submit(codelet, x.read(), y.update(), alpha=1.0)
    engine.wait()
    assert time.perf_counter() - begin < 2
