# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_changed.py: chunks that share memory while a kernel changes it.
"""They run at the same time and in any order: shared memory would give numbers at random."""

import numpy as np
import pytest

import quadriga


def increasing(chunks, **options):
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB").source(chunks, **options)
    return pipeline.kernel(lambda x: np.add(x, 1, out=x), updates=["x"])


SHARING = {
    "the same array": lambda x: [x, x],
    "overlapping rows": lambda x: [x[:6], x[3:]],
    "a turned view": lambda x: [x, x[::-1]],
    "strides that meet": lambda x: [x[::2], x[::3]],
}


@pytest.mark.parametrize("arrays", SHARING.values(), ids=SHARING)
def test_memory_that_chunks_share_is_refused(arrays):
    chunks = [{"x": each} for each in arrays(np.zeros(9))]
    words = "field 'x' of chunk 1 shares memory with field 'x' of chunk 0"
    with pytest.raises(quadriga.InvalidArgument, match=words):
        list(increasing(chunks).results())


def test_fields_of_one_chunk_too():
    x = np.zeros(9)
    pipeline = quadriga.Pipeline(devices="cpu:2").source([{"x": x, "y": x[2:]}])
    pipeline.kernel(lambda x, y: None, updates=["x", "y"])
    with pytest.raises(quadriga.InvalidArgument, match="'y' of chunk 0 shares memory with .*'x'"):
        pipeline.run()


def test_parts_of_an_array_are_chunks():
    x = np.zeros((8, 3))
    increasing({"x": x}, rows=2).run()
    assert (x == 1).all()
    interleaved = np.zeros(8)
    increasing([{"x": interleaved[first::2]} for first in range(2)]).run()
    assert (interleaved == 1).all()


def test_a_buffer_is_used_again_once_its_chunk_is_gone():
    x, seen = np.zeros(4), []

    def again():
        for _ in range(3):
            yield {"x": x.copy()}

    for chunk in increasing(again()).results():
        seen.append(chunk["x"].tolist())
    assert seen == [[1.0] * 4] * 3


def test_fields_that_are_only_read_may_be_shared():
    table = np.arange(4.0)
    chunks = [{"x": np.zeros(4), "table": table} for _ in range(5)]
    pipeline = increasing(chunks)
    pipeline.kernel(lambda table, x: np.add(x, table, out=x), reads=["table"], updates=["x"])
    assert all((chunk["x"] == table + 1).all() for chunk in pipeline.results())


def test_sizes_below_zero():
    pipeline = quadriga.Pipeline(devices="cpu:1").source([{"x": np.zeros(3)}])
    pipeline.kernel(lambda x, y: None, reads=["x"], writes={"y": lambda _: ((-3,), "f8")})
    with pytest.raises(quadriga.InvalidArgument, match=r"shape of 'y' is \(-3,\).*of 0 or more"):
        pipeline.run()
