# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_backwards.py: arrays with negative strides, such as x[::-1], in place.
"""Tasks see their elements in the array's order, and share the memory with what isn't turned."""

import numpy as np
import pytest
from test_sharing import COST, engine, increase

import quadriga
from quadriga import linalg

assert engine

VIEWS = {
    "a vector": lambda a: a.reshape(-1)[::-1],
    "with gaps": lambda a: a.reshape(-1)[::-3],
    "rows": lambda a: a[::-1],
    "columns": lambda a: a[:, ::-1],
    "both": lambda a: a[::-1, ::-1],
    "some rows": lambda a: a[4:1:-1],
    "every other row": lambda a: a[::-2],
    "of a transpose": lambda a: a.T[::-1, 2:5],
    "a row": lambda a: a[2:3, ::-1],
    "a single element": lambda a: a[2:3, 3:4][::-1],
    "three axes": lambda a: a.reshape(2, 3, 6)[::-1, :, ::-1],
    "none": lambda a: a[3:3][::-1],
}


@quadriga.codelet(access=["update"], cost=COST)
def number(x):
    """Depends on the order of the elements."""
    x[...] = x * 2 + np.arange(x.size).reshape(x.shape)


@quadriga.codelet(access=["read", "write"], cost=COST)
def copy(x, y):
    y[...] = x


@pytest.mark.parametrize("kind", ["f8", "i2", "c16"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_that_run_backwards(engine, view, kind):
    mine = np.arange(36).reshape(6, 6).astype(kind)
    theirs = mine.copy()
    out = np.zeros(view(mine).shape, kind)
    data = engine.data(view(mine))
    assert data.shape == out.shape
    for _ in range(2):
        engine.submit(number, data.update())
        engine.submit(increase, engine.data(mine).update())  # the same memory, in order
        turned = view(theirs)
        turned[...] = turned * 2 + np.arange(turned.size).reshape(turned.shape)
        theirs += 1
    engine.submit(copy, data.read(), engine.data(out[...]).write())
    engine.wait()
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(out, view(theirs))
    with data.on_host() as found:
        np.testing.assert_array_equal(found, view(theirs))


def test_an_array_and_its_turned_view_are_one_memory(engine):
    x = np.arange(5.0)
    with pytest.raises(quadriga.InvalidArgument, match="share memory|the same data"):
        engine.submit(copy, engine.data(x).read(), engine.data(x[::-1]).write())
    assert engine.data(x[::-1]) == engine.data(x)


def test_linalg_in_order_with_tasks_on_what_it_turns(engine):
    a = np.arange(16.0).reshape(4, 4)
    engine.submit(increase, engine.data(a[::-1]).update())
    found = linalg.matmul(a[::-1], np.eye(4), engine=engine)
    np.testing.assert_array_equal(found, np.arange(1.0, 17).reshape(4, 4)[::-1])


def test_results_that_run_backwards(engine):
    reverse = quadriga.codelet(access=["read"], cost=COST)(lambda x: x[::-1])
    x = np.arange(5.0)
    assert engine.submit(reverse, engine.data(x[::-1]).read()).result().tolist() == x.tolist()


def test_a_pipelines_fields(engine):
    chunks = [{"x": np.arange(6.0)[::-1], "t": np.arange(6.0).reshape(2, 3)[:, ::-1]}]
    pipeline = quadriga.Pipeline(engine=engine).source(chunks)
    pipeline.kernel(
        lambda x, t, y: np.add(x, t.ravel(), out=y),
        reads=["x", "t"],
        cost=COST,
        writes={"y": lambda chunk: (6, "f8")},
    )
    assert [chunk["y"].tolist() for chunk in pipeline.results()] == [[7, 5, 3, 7, 5, 3]]
