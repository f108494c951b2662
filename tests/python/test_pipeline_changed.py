# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_changed.py: chunks that share memory while a kernel changes it.
"""They run at the same time and in any order: shared memory would give numbers at random."""

import gc

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


def test_a_generator_cannot_refill_an_array_of_a_chunk_that_exists():
    buffer = np.zeros(4)

    def refilling():
        for number in range(5):
            buffer[...] = number
            yield {"x": buffer, "out": np.zeros(4)}

    pipeline = quadriga.Pipeline(devices="cpu:2").source(refilling())
    pipeline.kernel(lambda x, out: np.copyto(out, x), reads=["x"], updates=["out"])
    with pytest.raises(ValueError, match="read-only") as caught:
        list(pipeline.results())
    assert "yield an array of its own for each chunk" in caught.value.__notes__[0]
    del caught, pipeline
    gc.collect()
    buffer[...] = 7


def test_arrays_can_be_written_again_after_the_run():
    arrays = [np.zeros(3) for _ in range(3)]
    results = list(increasing({"x": each} for each in arrays).results())
    for array in arrays:
        array += 1
    assert [chunk["x"].tolist() for chunk in results] == [[2.0] * 3] * 3


def test_a_generator_fills_parts_of_a_buffer_in_turn():
    ring = np.zeros((3, 4))

    def by_parts():
        for number in range(3):
            ring[number] = number
            yield {"x": ring[number]}

    def add_one(chunk):
        chunk["x"][...] += 1  # stages may write

    pipeline = quadriga.Pipeline(devices="cpu:2").source(by_parts()).map(add_one)
    assert [chunk["x"][0] for chunk in pipeline.results()] == [1, 2, 3]
    assert ring[:, 0].tolist() == [1, 2, 3]


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


def test_an_estimate_counts_one_chunk_many_times():
    chunk = {"x": np.zeros(1000)}
    pipeline = increasing([chunk])
    once, many = (pipeline.estimate([chunk] * n, {"<lambda>": 1e-3}) for n in (1, 16))
    assert many.seconds > 5 * once.seconds
