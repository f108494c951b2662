# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_device_arrays.py: arrays of other libraries are used where they lie, and results
# are like them. Emulated devices stand for GPUs; the last tests need real ones.
import subprocess
import sys
import types

import numpy as np
import pytest
from arrays_of_tests import OnDevice, Pool

import quadriga
from quadriga import _core, foreign, linalg
from quadriga.layout import layout_on_device

RNG = np.random.default_rng(7)


@pytest.fixture
def engine():
    with quadriga.Engine("emulated:2,memory=16MiB,peer=4GB/s") as made:
        yield made


@pytest.fixture
def pool(engine):
    return Pool(engine)


def spd(order, dtype="d"):
    a = RNG.standard_normal((order, order)).astype(dtype)
    return a @ a.conj().T + order * np.eye(order, dtype=dtype)


def bytes_moved(engine):
    return sum(link.bytes for link in engine.counters().links)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_product_where_the_matrices_are(engine, pool, order):
    a, b = RNG.standard_normal((40, 30)), RNG.standard_normal((30, 50))
    there = [pool.array(x, order) for x in (a, b, np.zeros((40, 50)))]
    result = linalg.matmul(*there, tile=16, engine=engine)
    assert result is there[2]
    np.testing.assert_allclose(there[2].view, a @ b, atol=1e-12)


def test_nothing_moves_on_one_device():
    with quadriga.Engine("emulated:1,memory=16MiB") as engine:
        pool = Pool(engine)
        a = spd(60)
        there, out = pool.array(a), pool.array(np.zeros((60, 60)))
        engine.reset_counters()
        linalg.matmul(there, there, out, tile=16, engine=engine)
        linalg.cholesky(there, out=out, lower=True, check_finite=False, tile=16, engine=engine)
        assert bytes_moved(engine) == 0
        np.testing.assert_allclose(out.view, np.linalg.cholesky(a), atol=1e-10)


def test_vectors_and_operands_of_both_kinds(engine, pool):
    a, x = RNG.standard_normal((20, 30)), RNG.standard_normal(30)
    y = pool.array(np.zeros(20))
    linalg.matmul(a, pool.array(x), y, tile=8, engine=engine)
    np.testing.assert_allclose(y.view, a @ x, atol=1e-13)
    on_host = np.zeros(30)
    linalg.matmul(pool.array(a[:, 0]), a, out=on_host, tile=8, engine=engine)
    np.testing.assert_allclose(on_host, a[:, 0] @ a, atol=1e-13)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_conjugates_and_transposes(engine, pool, dtype, order):
    a, b = (RNG.standard_normal((20, n)).astype(dtype) for n in (12, 9))
    if dtype in "FD":
        a += 1j * RNG.standard_normal((20, 12))
    out = pool.array(np.zeros((12, 9), dtype), order)
    wanted = a.conj().T @ b
    if dtype in "FD":
        # A library that nobody knows makes no copies for us, which conjugating needs.
        with pytest.raises(quadriga.InvalidType, match="can't be made as arrays of 'arrays_of_te"):
            linalg.matmul(pool.array(a, order), b, out, trans_a=2, engine=engine)
        return
    linalg.matmul(pool.array(a, order), b, out, trans_a="C", tile=8, engine=engine)
    np.testing.assert_allclose(out.view, wanted, rtol=1e-4 if dtype == "f" else 1e-12)


def test_solutions_go_to_the_right_hand_side_on_its_device(engine, pool):
    a, b = spd(50), RNG.standard_normal((50, 4))
    known = {"check_finite": False, "tile": 16, "engine": engine}
    x = pool.array(b)
    assert linalg.solve(a, x, assume_a="pos", overwrite_b=True, **known) is x
    np.testing.assert_allclose(x.view, np.linalg.solve(a, b), atol=1e-12)
    x = pool.array(b)
    factor = linalg.cho_factor(pool.array(a), lower=True, overwrite_a=True, **known)
    linalg.cho_solve(factor, x, overwrite_b=True, check_finite=False)
    np.testing.assert_allclose(x.view, np.linalg.solve(a, b), atol=1e-12)
    c, lower = factor
    assert isinstance(c, OnDevice)
    assert lower
    np.testing.assert_allclose(np.tril(c.view), np.linalg.cholesky(a), atol=1e-10)
    x = pool.array(b)
    linalg.solve_triangular(c, x, lower=True, overwrite_b=True, **known)
    np.testing.assert_allclose(x.view, np.linalg.solve(np.linalg.cholesky(a), b), atol=1e-10)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diag(np.linalg.inv(a)), rtol=1e-10)


def test_rank_updates(engine, pool):
    a, c = RNG.standard_normal((30, 20)), spd(30)
    there = pool.array(c)
    assert linalg.syrk(1.0, pool.array(a), 2.0, there, overwrite_c=True, tile=8,
                       engine=engine) is there  # fmt: skip
    np.testing.assert_allclose(np.triu(there.view), np.triu(a @ a.T + 2 * c), atol=1e-11)


def test_a_zero_on_the_diagonal_is_found_there(engine, pool):
    a = np.triu(spd(20))
    a[13, 13] = 0
    with pytest.raises(quadriga.SingularMatrix, match="13"):
        linalg.solve_triangular(pool.array(a), pool.array(np.ones(20)), overwrite_b=True,
                                check_finite=False, engine=engine)  # fmt: skip


def test_results_of_a_library_that_nobody_knows_need_a_place(engine, pool):
    there = pool.array(spd(8))
    with pytest.raises(quadriga.InvalidType, match="pass an array of yours"):
        linalg.matmul(there, there, engine=engine)
    with pytest.raises(quadriga.InvalidType, match="check_finite=False"):
        linalg.cholesky(there, overwrite_a=True, engine=engine)


def test_different_kinds_need_out(engine, pool):
    a = spd(8)
    with pytest.raises(quadriga.InvalidArgument, match=r"b is NumPy's; pass out="):
        linalg.matmul(pool.array(a), a, engine=engine)


def test_what_is_read_only_or_can_not_be_used_in_place(engine, pool):
    a = spd(8)
    with pytest.raises(quadriga.InvalidArgument, match="out is read-only"):
        linalg.matmul(a, a, pool.array(a, read_only=True), engine=engine)
    wide = pool.array(np.zeros((8, 16)))
    strided = OnDevice(wide.view[::2, ::2])
    with pytest.raises(quadriga.InvalidArgument, match="contiguous rows or columns"):
        linalg.matmul(a[:4], a, strided, engine=engine)
    with pytest.raises(quadriga.InvalidArgument, match="a shares memory with out"):
        linalg.matmul(wide, np.zeros((16, 16)), wide, engine=engine)


@pytest.mark.parametrize("devices", ["cpu:1", "emulated:1,memory=1MiB"])
def test_memory_that_is_on_no_device_of_the_engine(devices):
    lying = OnDevice(spd(8))
    with quadriga.Engine(devices) as engine:
        with pytest.raises(quadriga.InvalidArgument, match="no device of this engine"):
            linalg.matmul(lying, lying, np.zeros((8, 8)), engine=engine)
        with pytest.raises(quadriga.InvalidArgument, match="no device of this engine"):
            engine.data(lying)


def test_data_on_a_device(engine, pool):
    @quadriga.codelet(access=["read", "update"], host_only=False)
    def add(a, b):
        b += a

    values = RNG.standard_normal((6, 5))
    for order in "CF":
        a, b = pool.array(values, order), pool.array(np.ones((6, 5)), order)
        first, second = engine.data(a), engine.data(b)
        assert second.array is b
        assert first.shape == (6, 5)
        for device in (0, 1):
            engine.submit(add, first.read(), second.update(), device=device)
        engine.wait()
        np.testing.assert_allclose(b.view, 1 + 2 * values)
    with pytest.raises(quadriga.InvalidArgument, match="read-only"):
        engine.data(pool.array(values, read_only=True)).update()


def test_a_body_on_the_host_gets_a_copy_that_goes_back(engine, pool):
    @quadriga.codelet(access=["update"])
    def double(a):
        a *= 2

    there = pool.array(np.arange(5.0))
    engine.submit(double, engine.data(there).update())
    engine.wait()
    np.testing.assert_array_equal(there.view, 2 * np.arange(5.0))


class Lender:
    """Offers DLPack alone."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_on_the_host():
    a = spd(8)
    np.testing.assert_allclose(linalg.matmul(Lender(a), a, engine=None), a @ a)
    assert foreign.seen(Lender(a)).ctypes.data == a.ctypes.data


class LenderOnDevice(Lender):
    """Says that it lies on a device, and would copy itself from there for NumPy."""

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, *_):
        raise AssertionError("elements were copied to the host")


def test_dlpack_on_a_device_is_copied_by_nobody():
    a = spd(8)
    found = foreign.seen(LenderOnDevice(a))
    assert isinstance(found, foreign.DeviceArray)
    assert (found.address, found.writeable) == (a.ctypes.data, False)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D", "i4", "u1", "?"])
def test_what_dlpack_tells(dtype):
    array = np.zeros((4, 6), dtype)[:, ::2]
    lent = _core.DLPack(array)
    assert (lent.address, lent.shape, lent.strides) == (
        array.ctypes.data, array.shape, array.strides)  # fmt: skip
    assert np.dtype(lent.dtype) == array.dtype


def test_interfaces_are_read_as_they_say():
    array = OnDevice(np.zeros((3, 4)), stream=7)
    found = foreign.seen(array)
    assert (found.shape, found.strides, found.stream) == ((3, 4), (32, 8), 7)
    assert foreign.seen(OnDevice(np.zeros(3), stream=None)).stream is None
    assert foreign.seen(OnDevice(np.zeros(3), version=2)).stream == 0, "who knows which"
    reversed_rows = foreign.seen(OnDevice(np.zeros((3, 4))[::-1]))
    assert not reversed_rows.is_contiguous
    assert len(reversed_rows.span) == 3 * 4 * 8
    with pytest.raises(quadriga.InvalidArgument, match="on a device .* runs backwards"):
        layout_on_device(reversed_rows.shadow)
    assert foreign.seen(OnDevice(np.zeros((3, 4), order="F"))).is_contiguous
    masked = OnDevice(np.zeros(3))
    masked.__cuda_array_interface__["mask"] = masked
    with pytest.raises(quadriga.InvalidArgument, match="masked"):
        foreign.seen(masked)


def test_tensors_on_the_host():
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(spd(12))
    factor = linalg.cholesky(a, lower=True)
    assert isinstance(factor, torch.Tensor)
    np.testing.assert_allclose(factor.numpy(), np.linalg.cholesky(a.numpy()))
    assert isinstance(linalg.matmul(a, a), torch.Tensor)
    with pytest.raises(quadriga.InvalidType, match="detach"):
        linalg.matmul(a.clone().requires_grad_(), a)


class TensorOfTests:
    """What is asked of a PyTorch tensor on the host; its conjugation may be put off."""

    __module__ = "torch"
    device = types.SimpleNamespace(type="cpu")
    requires_grad = False
    layout = "strided"

    def __init__(self, array, conjugate=False):
        self._array, self._conjugate = array, conjugate

    def resolve_conj(self):
        return TensorOfTests(self._array.conj()) if self._conjugate else self

    def resolve_neg(self):
        return self

    def data_ptr(self):
        return self._array.ctypes.data

    def __array__(self, *_, **__):
        return self._array


def test_what_a_tensor_has_put_off_can_not_be_written(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(strided="strided"))
    array = np.zeros((3, 3), complex)
    assert foreign.seen(TensorOfTests(array)).flags.writeable
    a = np.eye(3, dtype=complex)
    with pytest.raises(quadriga.InvalidArgument, match="out is read-only"):
        linalg.matmul(a, a, out=TensorOfTests(array, conjugate=True))
    assert not array.any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dtype": "torch.bfloat16"}, "NumPy has no type for elements of torch.bfloat16"),
        ({"device": types.SimpleNamespace(type="meta")}, "'meta'.*no content"),
        ({"layout": "torch.sparse_coo"}, "layout torch.sparse_coo"),
        ({"requires_grad": True}, "requires a gradient"),
    ],
)
@pytest.mark.parametrize("call", ["data", "matmul", "cho_factor"])
def test_tensors_without_plain_numbers_are_refused(changes, words, call, engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(strided="strided"))

    class Odd(TensorOfTests):
        __module__ = "torch"

        def resolve_conj(self):
            return self

        def __array__(self, *_, **__):
            raise TypeError("Got unsupported ScalarType BFloat16")

        def stride(self):
            return (2, 1)

    tensor = Odd(np.eye(2))
    tensor.shape = (2, 2)
    vars(tensor).update(changes)
    calls = {
        "data": engine.data,
        "matmul": lambda a: linalg.matmul(a, np.eye(2), engine=engine),
        "cho_factor": lambda a: linalg.cho_factor(a, engine=engine),
    }
    with pytest.raises(quadriga.InvalidType, match=words):
        calls[call](tensor)


def test_memory_that_numpy_lets_nobody_declare_writeable_can_be_written(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(strided="strided"))
    memory = np.zeros((3, 3))
    lent = types.SimpleNamespace(__array_interface__=memory.__array_interface__)
    out = TensorOfTests(np.asarray(lent))
    linalg.matmul(np.eye(3), np.eye(3), out=out)
    assert np.array_equal(memory, np.eye(3))


class CuPyOfTests:
    """Stands for CuPy on a machine with two GPUs, of which the first is current."""

    current = 0

    class Device:
        def __init__(self, number):
            self.id = number

        def __enter__(self):
            self.before, CuPyOfTests.current = CuPyOfTests.current, self.id

        def __exit__(self, *_):
            CuPyOfTests.current = self.before

    class Array:
        """Refuses what is queued on another device than its own, as CuPy does."""

        __module__ = "cupy"

        def __init__(self, view, device):
            self.view, self.device = view, CuPyOfTests.Device(device)

        def check(self):
            assert CuPyOfTests.current == self.device.id, "the array is on another device"
            return self

        @property
        def __cuda_array_interface__(self):
            stream = 100 + CuPyOfTests.current
            return OnDevice(self.view, stream=stream).__cuda_array_interface__

        def conj(self):
            return CuPyOfTests.Array(self.check().view.conj(), self.device.id)

        def __mul__(self, factor):
            return CuPyOfTests.Array(self.check().view * factor, self.device.id)

        def __setitem__(self, key, value):
            self.check().view[key] = getattr(value, "view", value)

    @classmethod
    def empty(cls, shape, dtype, order):
        return cls.Array(np.empty(shape, dtype, order=order), cls.current)

    @staticmethod
    def isfinite(array):
        return np.isfinite(array.check().view)


def test_cupy_queues_on_the_device_of_the_array(monkeypatch):
    standing = types.SimpleNamespace(
        cuda=CuPyOfTests, empty=CuPyOfTests.empty, isfinite=CuPyOfTests.isfinite
    )
    monkeypatch.setitem(sys.modules, "cupy", standing)
    there = foreign.seen(CuPyOfTests.Array(np.full((2, 3), 1 + 2j), 1))
    assert there.stream == 101, "what was queued on its own device is waited for"
    copy = there.conjugated()
    assert (copy.native.device.id, copy.stream) == (1, 101)
    assert (copy.native.view == 1 - 2j).all()
    copy.set(2)
    assert (copy.native.view == 2 - 4j).all()
    assert there.all_finite()
    assert CuPyOfTests.current == 0


# On a GPU


@pytest.fixture(params=["cupy", "torch"])
def library(request):
    """A library with a GPU, and how it makes an array there and reads it."""
    module = pytest.importorskip(request.param)
    try:
        quadriga.Machine.parse("cuda:1")
    except quadriga.Unavailable as absence:
        pytest.skip(str(absence))
    if request.param == "cupy":

        def there(x):
            made = module.asarray(x)
            module.cuda.runtime.deviceSynchronize()
            return made

        return module, there, module.asnumpy
    return module, lambda x: module.from_numpy(np.array(x)).cuda(), lambda x: x.cpu().numpy()


@pytest.fixture
def gpu():
    with quadriga.Engine("cuda:1") as made:
        yield made


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_on_a_gpu_results_are_in_kind(library, gpu, dtype, order):
    module, there, here = library
    tolerance = {"rtol": 2e-4, "atol": 2e-3} if dtype in "fF" else {"rtol": 1e-10, "atol": 1e-10}
    host, right = spd(300, dtype), RNG.standard_normal((300, 7)).astype(dtype)
    a, b = (there(x) if order == "C" else there(np.ascontiguousarray(x.T)).T for x in (host, right))
    kind = type(a)
    gpu.reset_counters()
    product = linalg.matmul(a, b, trans_a="C", tile=128, engine=gpu)
    assert type(product) is kind
    np.testing.assert_allclose(here(product), host.conj().T @ right, **tolerance)
    factor = linalg.cholesky(a, lower=True, engine=gpu)
    assert type(factor) is kind
    np.testing.assert_allclose(here(factor), np.linalg.cholesky(host), **tolerance)
    x = linalg.solve(a, b, assume_a="pos", engine=gpu, tile=128)
    assert type(x) is kind
    np.testing.assert_allclose(here(x), np.linalg.solve(host, right), **tolerance)
    held = linalg.cho_factor(a, engine=gpu, tile=128)
    np.testing.assert_allclose(here(held.solve(b)), np.linalg.solve(host, right), **tolerance)
    assert type(held.unpack(clean=True)) is kind
    assert bytes_moved(gpu) == 0, "nothing crossed a link"


def test_on_a_gpu_what_the_caller_queued_comes_first(library, gpu):
    module, there, here = library
    a = there(np.ones((4096, 4096)))
    stream = module.cuda.Stream(non_blocking=True) if module.__name__ == "cupy" else (
        module.cuda.Stream())  # fmt: skip
    with stream if module.__name__ == "cupy" else module.cuda.stream(stream):
        for _ in range(20):
            a = a @ a / 4096
        result = linalg.matmul(a, a, engine=gpu)
    np.testing.assert_allclose(here(result), 4096.0)


def test_on_a_gpu_one_product_is_as_fast_as_the_librarys(library, gpu):
    module, _, _ = library
    a = (module.ones((8192, 8192)) if module.__name__ == "cupy" else
         module.ones((8192, 8192), dtype=module.float64, device="cuda"))  # fmt: skip
    out = a * 0
    gpu.reset_counters()
    linalg.matmul(a, a, out, engine=gpu)
    assert gpu.counters().ended == 1
    assert bytes_moved(gpu) == 0


def test_importing_quadriga_imports_no_other_library():
    code = "import sys, quadriga; print({'cupy', 'torch'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
