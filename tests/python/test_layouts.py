# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_layouts.py: layouts of messages against NumPy.
"""What a layout packs is what NumPy's `ravel` of the same view gives."""

import copy
import pickle

import numpy as np
import pytest

from quadriga.errors import InvalidArgument, InvalidType
from quadriga.message import Layout


def packed(layout, array):
    return layout.pack(array).tobytes()


def random_view(random):
    """A view of an array by random slices and axes, with strides of either sign."""
    shape = random.integers(1, 7, size=random.integers(1, 5))
    kind = random.choice(["f8", "f4", "i2", "c16", "?", "S3", "M8[s]", "f4,i2", "u1"])
    array = np.frombuffer(random.bytes(int(np.prod(shape)) * np.dtype(kind).itemsize), dtype=kind)
    view = array.copy().reshape(shape).transpose(random.permutation(len(shape)))
    steps = [int(random.choice([1, 1, 2, 3, -1, -2])) for _ in shape]
    return view[tuple(slice(None, None, step) for step in steps)]


@pytest.mark.parametrize("seed", range(200))
def test_any_view_packs_as_numpy_copies_it(seed):
    view = random_view(np.random.default_rng(seed))
    layout = Layout.of(view)
    assert layout.nbytes == view.nbytes
    assert packed(layout, view) == view.tobytes()


@pytest.mark.parametrize("seed", range(200))
def test_any_view_unpacks_to_the_same_elements(seed):
    view = random_view(np.random.default_rng(seed))
    layout, data = Layout.of(view), view.tobytes()
    view[...] = np.zeros((), view.dtype)
    layout.unpack(data, view)
    assert view.tobytes() == data


def test_repr_says_the_canonical_form():
    a = np.zeros((6, 8))
    assert repr(Layout.of(a)) == "Layout(run of 384 B, 48 float64)"
    assert repr(Layout.of(a[::2, ::-1])) == (
        "Layout(strides 3 x 128 B, 8 x -8 B of runs of 8 B, 24 float64)"
    )
    assert repr(Layout.triangle(8, "f8")) == ("Layout(8 runs 64 B apart of 8 to 64 B, 36 float64)")
    assert repr(Layout.indexed([1, 1, 1], [0, 2, 5], "f4")) == (
        "Layout(a list of 3 runs, 3 float32)"
    )


def test_equal_places_are_equal_however_they_were_described():
    a = np.zeros((6, 8), dtype="f4")
    columns = Layout.of(a[:, :2])
    assert columns == Layout.vector(6, 2, 8, "f4")
    assert columns == Layout.indexed([2] * 6, range(0, 48, 8), "f4")
    assert hash(columns) == hash(Layout.vector(6, 2, 8, "f4"))
    assert columns != Layout.vector(6, 2, 8, "i4")
    assert Layout.of(a.T.T) == Layout.of(a)
    assert Layout.of(a.T) != Layout.of(a)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_triangles_pack_their_half(lower, diagonal, order):
    a = np.arange(49.0).reshape((7, 7), order=order)
    half = np.tril if lower else np.triu
    shift = (0 if diagonal else 1) * (-1 if lower else 1)
    inside = half(np.ones((7, 7), dtype=bool), shift)
    layout = Layout.triangle(7, "f8", lower=lower, diagonal=diagonal, order=order)
    expected = a[inside] if order == "C" else a.T[inside.T]
    np.testing.assert_array_equal(layout.pack(a).view("f8"), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_parts_of_an_array_dealt_in_blocks_are_all_of_it(order):
    shape, block, grid = (11, 14), (2, 3), (2, 3)
    a = np.arange(154).reshape(shape, order=order)
    found = np.zeros_like(a)
    for i in range(2):
        for j in range(3):
            rows = [r for r in range(11) if r // 2 % 2 == i]
            cols = [c for c in range(14) if c // 3 % 3 == j]
            part = Layout.block_cyclic(shape, block, grid, (i, j), "i8", order=order)
            expected = a[np.ix_(rows, cols)].ravel(order)
            np.testing.assert_array_equal(part.pack(a).view("i8"), expected)
            part.unpack(expected, found)
    np.testing.assert_array_equal(found, a)


def test_a_subarray_is_a_slice():
    a = np.arange(60.0).reshape(3, 4, 5)
    layout = Layout.subarray((3, 4, 5), (2, 2, 3), (1, 0, 2), "f8")
    np.testing.assert_array_equal(layout.pack(a).view("f8"), a[1:3, 0:2, 2:5].ravel())
    assert layout.extent == a.nbytes


@pytest.mark.parametrize("seed", range(20))
def test_layouts_are_pickled_and_copied(seed):
    view = random_view(np.random.default_rng(seed))
    for layout in (
        Layout.of(view),
        Layout.triangle(5, "c8"),
        Layout.indexed(2, [7, 0, 3], "f4,i2"),
    ):
        for again in (pickle.loads(pickle.dumps(layout)), copy.deepcopy(layout)):
            assert again == layout and hash(again) == hash(layout)
            assert again.extent == layout.extent and repr(again) == repr(layout)


def test_a_pickle_that_is_no_layout_is_refused():
    decode, (given, period, elements) = Layout.of(np.zeros((3, 4), "f8,i2")).__reduce__()
    assert period == 2
    for wrong in (b"", given[:-1], bytes(len(given)), given + given):
        with pytest.raises(InvalidArgument, match="layout"):
            decode(wrong, period, elements)
    for wrong in (0, 1, 3, 2**63):
        with pytest.raises(InvalidArgument, match="don't repeat"):
            decode(given, wrong, elements)


def test_records_pack_their_fields_without_gaps():
    kind = np.dtype(
        {"names": ["x", "n"], "formats": ["f8", "i4"], "offsets": [0, 8], "itemsize": 16}
    )
    a = np.zeros(5, dtype=kind)
    a["x"], a["n"] = np.arange(5), np.arange(5)
    layout = Layout.of(a)
    assert layout.nbytes == 60
    back = np.zeros(5, dtype=kind)
    layout.unpack(layout.pack(a), back)
    np.testing.assert_array_equal(back, a)


def test_a_transpose_travels():
    a = np.arange(12.0).reshape(3, 4)
    b = np.zeros((4, 3))
    Layout.of(b.T).unpack(Layout.of(a).pack(a), b.T)
    np.testing.assert_array_equal(b, a.T)


def test_unpacking_combines_with_an_operation():
    a, b = np.arange(10.0), np.arange(10.0)
    layout = Layout.of(a[::2])
    layout.unpack(np.full(5, 10.0), a[::2], "sum")
    np.testing.assert_array_equal(a, b + np.tile([10.0, 0.0], 5))
    layout.unpack(np.full(5, 3.0), a[::2], lambda there, arrives: there * arrives)
    np.testing.assert_array_equal(a[::2], (b[::2] + 10) * 3)
    with pytest.raises(InvalidArgument, match="no operation 'plus'; there are sum prod min"):
        layout.unpack(np.full(5, 3.0), a[::2], "plus")


def test_overlapping_elements_only_send():
    a = np.arange(4.0)
    many = np.broadcast_to(a, (3, 4))
    layout = Layout.of(many)
    assert layout.overlapping
    np.testing.assert_array_equal(layout.pack(many).view("f8"), np.tile(a, 3))
    with pytest.raises(InvalidArgument, match="overlap; it can send, but not receive"):
        layout.unpack(np.zeros(12), a)


def test_memory_of_others_is_out_of_reach():
    a = np.zeros(10)
    with pytest.raises(InvalidArgument, match="reaches bytes 0 to 88 from the first element"):
        Layout.contiguous(11, "f8").pack(a)
    with pytest.raises(InvalidArgument, match="reaches bytes -72 to 8"):
        Layout.of(a[::-1]).pack(a)
    with pytest.raises(InvalidArgument, match="can't be written"):
        Layout.of(a).unpack(np.zeros(10), np.broadcast_to(a, (1, 10)))


def test_sizes_that_differ_are_refused():
    a = np.zeros(4)
    with pytest.raises(InvalidArgument, match="24 bytes; expected 32"):
        Layout.of(a).unpack(np.zeros(3), a)
    with pytest.raises(InvalidArgument, match="out has 24 bytes; expected 32"):
        Layout.of(a).pack(a, out=np.zeros(3))


def test_types_that_cannot_travel_are_refused():
    with pytest.raises(InvalidArgument, match="Python objects"):
        Layout("O")
    with pytest.raises(InvalidArgument, match="byte order"):
        Layout(">f8" if np.little_endian else "<f8")
    with pytest.raises(InvalidArgument, match="expected 'C' or 'F'"):
        Layout.triangle(3, "f8", order="K")


def test_blocks_of_one_length_and_what_is_no_index():
    assert Layout.indexed(2, [0, 5, 9], "f8") == Layout.indexed([2, 2, 2], [0, 5, 9], "f8")
    assert Layout.indexed(1, np.array([]), "f8").count == 0
    for wrong in ([0.5, 2.0], np.array([True, False]), ["a"], [[0, 1]]):
        with pytest.raises(InvalidType, match="expected integers in one dimension"):
            Layout.indexed(1, wrong, "f8")
        with pytest.raises(InvalidType, match="lengths are"):
            Layout.indexed(wrong, range(len(wrong)), "f8")
