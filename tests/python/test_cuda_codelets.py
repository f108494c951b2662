# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cuda_codelets.py: codelets with CUDA variants, as far as no GPU is needed.
import contextlib
import weakref

import numpy as np
import pytest

import quadriga
from quadriga import cuda_grid, cuda_source, device_arrays, nvrtc
from quadriga.cuda_source import Matrix, matrix_of
from quadriga.errors import InvalidArgument, InvalidType, Unavailable
from quadriga.given import Result
from quadriga.layout import layout_of, layout_of_new
from quadriga.record import Record

SOURCE = quadriga.CudaSource("not compiled here", parameters={"alpha": "float64", "count": "int32"})


def add(x, y, alpha, count):
    y += count * alpha * x


@pytest.fixture
def requests(monkeypatch):
    """As if a device of architecture 90 were there, and NVRTC; what it was asked for."""
    asked = []

    def image_of(request, architecture):
        asked.append((request, architecture))
        return nvrtc.Image(b"code", "name")

    monkeypatch.setattr(nvrtc, "image_of", image_of)
    monkeypatch.setattr(cuda_source._core, "cuda_architectures", lambda: [90])
    return asked


def plan(source, *arrays, access=("read", "update"), **values):
    return source.plan("add", [layout_of(array) for array in arrays], access, values)


def spread(source, *shapes, access=("read", "update")):
    layouts = [layout_of_new(shape, float) for shape in shapes]
    return source._spread("add", layouts, [matrix_of(each) for each in layouts], access)


def test_launches_on_the_same_data_are_planned_once(requests):
    source = quadriga.CudaSource("text", parameters={"alpha": "float64"})
    layouts = [layout_of(np.ones(3)), layout_of(np.ones(3))]
    access = ["read", "update"]

    def planned(alpha, layouts=layouts, access=access):
        return source.plan("add", layouts, access, {"alpha": alpha})

    first = planned(0.0)
    assert planned(0.0) is first
    assert planned(-0.0) is not first
    assert planned(0.0, access=["update", "read"]) is not first
    assert planned(0.0, [layouts[0], layout_of(np.ones(4))]) is not first
    with pytest.raises(InvalidArgument):
        planned("one")


def test_grids_that_are_computed_are_asked_for_each_launch(requests):
    asked = []
    source = quadriga.CudaSource("text", grid=lambda *shapes: asked.append(shapes) or 1)
    layout = layout_of(np.ones(3))
    for _ in range(2):
        source.plan("add", [layout], ["update"], {})
    assert asked == [((3,),)] * 2


def test_the_host_runs_the_body_where_there_is_no_gpu(engine):
    codelet = quadriga.codelet(access=["read", "update"], cuda=SOURCE)(add)
    y = np.ones(3)
    x = engine.data(np.arange(3.0))
    engine.submit(codelet, x.read(), engine.data(y).update(), alpha=2.0, count=3)
    engine.wait()
    assert y.tolist() == [1, 7, 13]


@pytest.mark.parametrize("variant", [{"cuda": SOURCE}, {"cuda": add, "arrays": "cupy"}])
def test_without_a_body_a_gpu_is_needed(engine, variant):
    codelet = quadriga.Codelet(None, ["read", "update"], name="add", **variant)
    x, y = engine.data(np.ones(3)), engine.data(np.ones(3))
    with pytest.raises(Unavailable, match="codelet 'add'"):
        engine.submit(codelet, x.read(), y.update(), alpha=2.0, count=3)
    engine.wait()


def test_one_function_may_serve_both():
    codelet = quadriga.codelet(access=["read", "update"], arrays="torch")(add)
    assert codelet.cuda is codelet.cpu is add


def test_names_come_from_the_variants():
    def of(**given):
        return quadriga.Codelet(given.pop("body", None), ["read"], **given).name

    assert of(body=add, cuda=SOURCE) == "add"
    assert of(cuda=quadriga.CudaSource("", "kernel")) == "kernel"
    assert of(cuda=add, arrays="cupy") == "add"
    assert of(cuda=SOURCE) == "codelet"
    assert of(cuda=SOURCE, name="mine") == "mine"


@pytest.mark.parametrize(
    ("variant", "error", "message"),
    [
        ({}, InvalidArgument, "without a body"),
        ({"cuda": add}, InvalidArgument, "arrays='cupy' or 'torch'"),
        ({"cuda": add, "arrays": "jax"}, InvalidArgument, "one of cupy, torch"),
        ({"cuda": SOURCE, "arrays": "cupy"}, InvalidArgument, "for callables"),
        ({"cuda": "__global__ ..."}, InvalidType, "expected a CudaSource"),
        ({"cuda": SOURCE, "submits": True}, InvalidArgument, "on the host submit"),
    ],
)
def test_variants_that_make_no_sense_are_refused(variant, error, message):
    with pytest.raises(error, match=message):
        quadriga.Codelet(None, ["read"], **variant)


def test_kernels_are_asked_for_by_the_types_of_operands(requests):
    source = quadriga.CudaSource("text", "kernel", parameters={"n": int}, options=["-G"])
    x, y = np.ones(3, np.int16), np.ones((2, 2), complex)
    plan(source, x, y, n=1)
    plan(source, x[:2], y.T, n=2)
    signature = ("quadriga::Tile<const short>", "quadriga::Tile<double2>", "long long")
    assert requests == [(nvrtc.Request("add", "text", "kernel", signature, ("-G",)), 90)]
    plan(source, y, y, n=3)
    assert len(requests) == 2
    plan(quadriga.CudaSource("text"), x, y)
    assert requests[-1][0].kernel == "add"


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.ones((3, 5)), Matrix(3, 5, 5, 1, 0, 1)),
        (np.ones((3, 5), order="F"), Matrix(3, 5, 1, 3, 1, 1)),
        (np.ones((6, 5), np.int32)[::2], Matrix(3, 5, 10, 1, 0, 4)),
        (np.ones(7), Matrix(7, 1, 1, 0, -1, 1)),
        (np.ones(8)[::2], Matrix(4, 1, 1, 0, 0, 1)),
        (np.ones(()), Matrix(1, 1, 1, 0, -1, 1)),
        (np.ones((2, 3, 4)), Matrix(24, 1, 1, 0, -1, 1)),
        (np.ones((0, 4), order="F"), Matrix(0, 4, 0, 0, -1, 1)),
    ],
    ids=["c", "fortran", "rows", "vector", "step", "scalar", "3d", "empty"],
)
def test_arrays_are_tiles_of_their_own_shape(array, expected):
    found = matrix_of(layout_of(array))
    assert found == expected
    # Elements are where the steps say, with the array's own leading dimension.
    layout = layout_of(array)
    steps = [found.row_step, found.col_step]
    if found.ld_axis >= 0:
        steps[found.ld_axis] = layout.ld // found.unit
    if array.ndim == 2 and array.size:
        assert tuple(step * array.itemsize for step in steps) == array.strides


def test_grids_cover_the_first_operand_that_is_written():
    source = quadriga.CudaSource
    assert spread(source(""), (10,), (30, 40)) == ((5, 1, 1), (256, 1, 1))
    assert spread(source("", block=128), (10,), (0,)) == ((0, 1, 1), (128, 1, 1))
    assert spread(source("", block=(32, 8)), (9, 9), (30, 40)) == ((2, 4, 1), (32, 8, 1))
    assert spread(source(""), (300,), (5,), access=("read", "read"))[0] == (2, 1, 1)
    given = source("", grid=lambda x, y: (x[0], y[1]), block=lambda x, y: x)
    assert spread(given, (10,), (30, 40)) == ((10, 40, 1), (10, 1, 1))


@pytest.mark.parametrize(
    "given", [{"grid": (1, 2, 3, 4)}, {"grid": 1.5}, {"block": 0}, {"grid": -1}]
)
def test_extents_that_are_none_are_refused(given):
    with pytest.raises(
        InvalidArgument, match="codelet 'add': (grid|block) .*expected one to three"
    ):
        spread(quadriga.CudaSource("", **given), (10,), (10,))


def test_blocks_that_no_device_has_are_refused():
    for block in (64, 32), (1, 1, 128):
        with pytest.raises(InvalidArgument, match="at most 1024, and 64 along z"):
            spread(quadriga.CudaSource("", block=block), (10,), (10,))


@pytest.mark.parametrize(
    ("rows", "cols", "block", "expected"),
    [
        (2**36, 3, (256, 1, 1), (3 * 2**28, 1, 1)),
        (3, 2**35, (32, 8, 1), (2**30, 1, 1)),
        (8 * 65_535, 3, (32, 8, 1), (1, 65_535, 1)),
        (2**36, 0, (32, 8, 1), (0, 2**33, 1)),  # runs nothing
    ],
)
def test_default_grids_reach_as_far_as_cuda_does(rows, cols, block, expected):
    assert cuda_grid.default_grid("add", rows, cols, block) == expected


@pytest.mark.parametrize(
    ("rows", "cols", "block", "words"),
    [
        (8 * 65_535 + 1, 3, (32, 8, 1), ["524281 x 3", "65536 blocks along y", "at least 9 along"]),
        (2**27, 3, (1, 8, 1), ["at most 65535; give a block of one dim", "several rows"]),
        (2**31, 1, (1, 1, 1), ["along x, and CUDA has at most 2147483647; give a larger block"]),
        (1, 2**31, (1, 8, 1), ["2147483648 blocks along x", "give a larger block"]),
    ],
)
def test_default_grids_that_no_device_has_are_refused(rows, cols, block, words):
    with pytest.raises(InvalidArgument, match="codelet 'add'") as refusal:
        cuda_grid.default_grid("add", rows, cols, block)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("grid", "word"),
    [((1, 65_536), "65535 along y"), ((1, 1, 2**16), "65535 along z"), (2**31, "along x")],
)
def test_given_grids_that_no_device_has_are_refused(grid, word):
    with pytest.raises(InvalidArgument, match=f"codelet 'add': a grid of .*{word}"):
        spread(quadriga.CudaSource("", grid=grid), (10,), (10,))
    assert spread(quadriga.CudaSource("", grid=(2**31 - 1, 65_535, 65_535)), (10,), (10,))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": 1.0}, "takes count=, which is missing"),
        ({"alpha": 1j, "count": 1}, "alpha=1j; its CUDA source takes one float64"),
        ({"alpha": 1.0, "count": 2**40}, "takes one int32"),
        ({"alpha": 1.0, "count": 1.5}, "takes one int32"),
        ({"alpha": [1.0], "count": 1}, "takes one float64"),
    ],
)
def test_parameters_that_the_kernel_cannot_take_are_refused(requests, values, message):
    with pytest.raises(InvalidArgument, match=message):
        plan(SOURCE, np.ones(3), np.ones(3), **values)


def test_values_are_packed_as_their_types(requests):
    def packed(title, name, kind, values):
        return cuda_source._packed(title, cuda_source._Scalar.of(name, kind), values)

    assert packed("c", "a", np.dtype(np.float32), {"a": 2}) == np.float32(2).tobytes()
    assert packed("c", "a", np.dtype(np.uint8), {"a": np.int64(255)}) == b"\xff"
    assert packed("c", "a", np.dtype(bool), {"a": True}) == b"\x01"


def test_operands_that_run_backwards_are_refused(requests):
    with pytest.raises(InvalidArgument, match="operand 1 of codelet 'add' runs backwards"):
        plan(SOURCE, np.ones(3), np.ones(3)[::-1], alpha=1, count=1)


def test_types_without_a_name_in_cpp_are_refused(requests):
    with pytest.raises(InvalidType, match="operand 1 is of type float16"):
        plan(SOURCE, np.ones(3), np.ones(3, np.float16), alpha=1, count=1)
    with pytest.raises(InvalidType, match="parameter 'x' is of type datetime64"):
        quadriga.CudaSource("", parameters={"x": "datetime64[s]"})


class OnTheHost(device_arrays.DeviceArrays):
    """Stands in for a library: arrays of NumPy, a stream that says whether it is current."""

    def __init__(self):
        super().__init__("numpy", "NumPy")
        self.current = []
        self.made = []

    @contextlib.contextmanager
    def on_stream(self, stream, device):
        self.current.append((stream, device))
        yield
        self.current.pop()

    def _stream(self, stream, device):
        return stream, device

    def _tile(self, layout, address, ld, device):
        self.made.append(address)
        return layout.view(address, ld, True)

    def _alias(self, tile):
        return tile.view()


def run_on_device(function, *arrays, **parameters):
    """What the engine does with a record of such a codelet; its result, which somebody can read."""
    codelet = quadriga.Codelet(None, ["update"] * len(arrays), cuda=function, arrays="cupy")
    codelet.arrays = OnTheHost()
    with quadriga.Engine("cpu:1") as engine:
        data = [engine.data(array) for array in arrays]
        record = Record(1, codelet, [each.update() for each in data], parameters)
        record.prepare_for_cuda()
        places = tuple(
            (array.ctypes.data, each.place.layout.ld)
            for array, each in zip(arrays, data, strict=True)
        )
        result = Result()
        record.result = weakref.ref(result)
        record.run_on_device(places, 77, 3)
        return result


def test_callables_get_arrays_on_the_stream_of_the_task():
    seen = []

    def scale(x, y, factor):
        seen.extend(record_of_library.current)
        x *= factor
        y *= factor
        return "done"

    record_of_library = OnTheHost()
    x, y = np.ones((4, 6))[:, :3], np.ones(5)
    original = OnTheHost.on_stream
    OnTheHost.on_stream = lambda self, *given: original(record_of_library, *given)
    try:
        result = run_on_device(scale, x, y, factor=3.0)
    finally:
        OnTheHost.on_stream = original
    assert seen == [(77, 3)]
    assert record_of_library.current == []
    assert result.value == "done"
    assert (x == 3).all()
    assert (y == 3).all()


def test_arrays_over_tiles_are_kept_and_whoever_gets_one_gets_its_own():
    library, x = OnTheHost(), np.arange(6.0)
    with quadriga.Engine("cpu:1") as engine:
        layout = engine.data(x).place.layout
        address = x.ctypes.data
        first = library.view(layout, address, layout.ld, 0)
        first.shape = (2, 3)
        second = library.view(layout, address, layout.ld, 0)
        assert second.shape == (6,)
        assert np.shares_memory(first, second)
        assert library.made == [address]
        library.view(layout, address, layout.ld, 1)
        library.view(layout, address + 8, layout.ld, 0)
        assert library.made == [address, address, address + 8], "others are others"
        assert library.stream(7, 0) == (7, 0)


def test_what_a_callable_raises_is_kept_without_its_arrays():
    views = []

    def fail(x):
        views.append(weakref.ref(x))
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose") as failure:
        run_on_device(fail, np.ones(3))
    assert [entry.name for entry in failure.traceback][-1] == "fail"
    assert views[0]() is None


def test_a_callable_may_return_part_of_its_operand():
    x = np.arange(4.0)
    result = run_on_device(lambda x: {"first": x[:2]}, x)
    assert result.value["first"].tolist() == [0, 1]
    assert not np.may_share_memory(result.value["first"], x)


def test_libraries_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(Unavailable, match="arrays='cupy' needs CuPy"):
        _ = device_arrays._CuPy("cupy", "CuPy").module


def test_strides_follow_the_leading_dimension():
    matrix = layout_of(np.ones((3, 5), np.int32))
    assert device_arrays.strides_at(matrix, 5 * 4) == (20, 4)
    assert device_arrays.strides_at(matrix, 8 * 4) == (32, 4)
    assert device_arrays.bytes_of(matrix, 8 * 4) == 2 * 32 + 20
    vector = layout_of(np.ones(8)[::2])
    assert device_arrays.strides_at(vector, 1) == (8,)
    assert device_arrays.bytes_of(vector, 1) == 32


@pytest.mark.parametrize("kind", ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d"])
def test_numbers_of_pythons_own_are_packed_as_numpy_does(kind):
    dtype = np.dtype(kind)
    scalar = cuda_source._Scalar.of("n", cuda_source._known(dtype, "n"))
    values = [True, False] if kind == "?" else [0, 1, 100]
    values += [0.0, -0.0, 0.1, 1e300, float("inf"), -1.5] if kind in "fd" else []
    for value in values:
        with np.errstate(over="ignore"):
            assert cuda_source._packed("t", scalar, {"n": value}) == dtype.type(value).tobytes()
    if dtype.kind in "iu":
        for value in (int(np.iinfo(dtype).max), int(np.iinfo(dtype).min)):
            packed = cuda_source._packed("t", scalar, {"n": value})
            assert np.frombuffer(packed, dtype).tolist() == [value]
        for value in (int(np.iinfo(dtype).max) + 1, int(np.iinfo(dtype).min) - 1, 1.0, None):
            with pytest.raises(quadriga.InvalidArgument, match="its CUDA source takes one"):
                cuda_source._packed("t", scalar, {"n": value})


class TorchOfTests:
    """Its current device and streams, which a thread keeps."""

    def __init__(self, has_inner):
        self.cuda = self
        self.device, self.streams, self.calls = 0, {}, []
        if has_inner:
            self._C = self

    def ExternalStream(self, handle, device):  # noqa: N802
        return (handle, device)

    def current_device(self):
        return self.device

    def set_device(self, device):
        self.device = device

    def set_stream(self, stream):
        self.calls.append(stream)
        self.streams[stream[1]] = stream[0]

    def _cuda_getCurrentStream(self, device):  # noqa: N802
        return (self.streams.get(device, 0), device, 1)

    def current_stream(self, device):
        return type("Stream", (), {"cuda_stream": self.streams.get(device, 0)})


@pytest.mark.parametrize("has_inner", [True, False])
def test_pytorchs_stream_is_set_only_where_another_is_current(has_inner):
    library = device_arrays._Torch("torch", "PyTorch")
    library._imported = torch = TorchOfTests(has_inner)
    for stream, device in ((7, 0), (7, 0), (8, 0), (7, 0), (7, 1), (7, 1), (7, 0)):
        with library.on_stream(stream, device):
            assert (torch.device, torch.streams[device]) == (device, stream)
    assert torch.calls == [(7, 0), (8, 0), (7, 0), (7, 1)]
    torch.set_stream((9, 0))  # as a callable may, which doesn't set it back
    with library.on_stream(7, 0):
        assert torch.streams[0] == 7
