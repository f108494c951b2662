# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_fields.py: arrays of any class and owner as fields of chunks.
import numpy as np
import pytest

import quadriga

DEVICES = ["cpu:2", "emulated:1,memory=1MiB"]


def squared(devices, x):
    def square(x, y):
        y[...] = x * x

    stream = quadriga.Pipeline("1MiB", devices=devices).source({"x": x} for _ in range(2))
    stream.kernel(square, reads=["x"], writes={"y": lambda chunk: (np.shape(x), "f8")})
    return [chunk["y"].tolist() for chunk in stream.results()]


@pytest.mark.parametrize("devices", DEVICES)
def test_kernels_get_plain_arrays(devices):
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    assert squared(devices, matrix) == [[[1, 4], [9, 16]]] * 2


@pytest.mark.parametrize("devices", DEVICES)
def test_masked_arrays_are_refused(devices):
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    with pytest.raises(quadriga.InvalidArgument, match="field 'x' of chunk 0 is a masked array"):
        squared(devices, masked)
    stream = quadriga.Pipeline("1MiB", devices=devices).source({"x": np.ones(2)} for _ in range(2))
    stream.kernel(lambda x: np.ma.masked_less(x, 0), reads=["x"], returns="z", name="clip")
    with pytest.raises(
        quadriga.InvalidArgument, match="'z', which kernel 'clip' returns, is a mas"
    ):
        list(stream.results())


def doubled(devices, look):
    """What comes of four chunks, and the addresses at which their fields were changed."""
    changed = []

    def double(z):
        changed.append(z.ctypes.data)
        z *= 2

    stream = quadriga.Pipeline("1MiB", devices=devices)
    stream.source({"x": np.full(3, float(i))} for i in range(4))
    stream.kernel(look, reads=["x"], returns="z").kernel(double, updates=["z"])
    return [chunk["z"].tolist() for chunk in stream.results(in_order=True)], changed


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("part", [slice(None), slice(0, 3)], ids=["whole", "slice"])
def test_a_table_that_kernels_return_is_copied_before_it_is_changed(devices, part):
    table = np.arange(4.0)
    found, _ = doubled(devices, lambda x: table[part] if part.stop else table)
    assert found == [(2 * np.arange(4.0)[part]).tolist()] * 4
    assert table.tolist() == [0, 1, 2, 3]


def test_arrays_of_their_own_are_changed_where_they_lie():
    made = []

    def add(x):
        whole = np.stack([x, x + 1])
        made.append(whole.ctypes.data)
        return whole.T

    found, changed = doubled("cpu:1", add)
    assert found == [[[2 * i, 2 * i + 2]] * 3 for i in range(4)]
    assert sorted(changed) == sorted(made)


def test_tasks_that_are_given_a_masked_result_have_masks_of_their_own():
    def make(x):
        return np.ma.masked_array(x.copy(), mask=np.zeros(len(x), bool))

    def reject(x):
        x[x > 2] = np.ma.masked
        return float(x.mean())

    def codelet(body):
        return quadriga.codelet(access=["read"])(body)

    with quadriga.Engine("cpu:1") as engine:
        made = engine.submit(codelet(make), engine.data(np.arange(5.0)).read())
        assert engine.submit(codelet(reject), made).result() == 1
        assert engine.submit(codelet(lambda x: float(x.mean())), made).result() == 2
        assert made.result().mean() == 2


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_a_part_of_a_reduction_that_is_kept_is_refused(devices):
    kept = []

    def add(x, part):
        part += x.sum()

    def join(whole, part):
        whole += part
        kept.append(part)

    stream = quadriga.Pipeline("1MiB", devices=devices)
    stream.source({"x": np.ones(9)} for _ in range(40))
    stream.reduce("x", (add, join), initial=np.zeros(1), name="total")
    with pytest.raises(quadriga.Error, match="'total': .*keeps a view of a part"):
        stream.run()
