# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_reuse.py: sources that fill the same memory for each chunk.
"""Chunks are copies where the source says so; otherwise the run ends with an error, not wrong."""

import io
import threading
import time

import numpy as np
import pytest

import quadriga
from quadriga.pipeline import Chunk
from quadriga.pipeline.lent import Lent

LENGTH, COUNT = 64, 9
BYTES = np.repeat(np.arange(COUNT, dtype="u1"), LENGTH).tobytes()


class Reader:
    """Reads into one array, as loaders of batches do."""

    def __init__(self):
        self.file = io.BytesIO(BYTES)
        self.batch = np.empty(LENGTH, "u1")

    def __iter__(self):
        return self

    def __next__(self):
        if self.file.readinto(self.batch) == 0:
            raise StopIteration
        return self.batch


def into_a_slice():
    file, buffer = io.BytesIO(BYTES), np.empty(2 * LENGTH, "u1")
    while count := file.readinto(buffer[:LENGTH]):
        yield buffer[:count]


def into_a_bytearray():
    file, buffer = io.BytesIO(BYTES), bytearray(LENGTH)
    array = np.frombuffer(buffer, "u1")
    while file.readinto(buffer):
        yield array


def through_a_view():
    file, buffer = io.BytesIO(BYTES), np.empty(LENGTH, "u1")
    view = buffer[:]  # made before the buffer is yielded: stays writable
    while file.readinto(view):
        yield buffer


def through_a_memoryview():
    file, buffer = io.BytesIO(BYTES), np.empty(LENGTH, "u1")
    view = memoryview(buffer)
    while file.readinto(view):
        yield buffer


def into_columns():
    table = np.zeros((LENGTH, 2), "u1")
    for number in range(COUNT):
        table[:, number % 2] = number
        yield table[:, number % 2]


SOURCES = [
    Reader,
    into_a_slice,
    into_a_bytearray,
    into_columns,
    through_a_view,
    through_a_memoryview,
]
DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]


def added(source, devices="cpu:2", **options):
    pipeline = quadriga.Pipeline(devices=devices, look_ahead=16).source(source, **options)
    return pipeline.kernel(
        lambda array, sum: np.copyto(sum, array.sum(dtype="i8")),
        reads=["array"],
        writes={"sum": lambda chunk: ((1,), "i8")},
    )


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("source", SOURCES)
def test_chunks_of_a_source_that_reuses_memory_are_copies(source, devices):
    results = list(added(source(), devices, reuses=True).results())
    assert [int(chunk["sum"][0]) for chunk in results] == [LENGTH * n for n in range(COUNT)]
    assert [int(chunk["array"][0]) for chunk in results] == list(range(COUNT))


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("source", SOURCES)
def test_without_that_word_the_run_ends_with_an_error(source, devices):
    with pytest.raises((quadriga.InvalidArgument, TypeError, ValueError, BufferError)) as caught:
        list(added(source(), devices).results())
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "reuses=True" in told or "read-write" in told


def test_the_error_names_both_chunks():
    words = "field 'array' of chunk 1 lies in memory of field 'array' of chunk 0.*reuses=True"
    chunks = into_a_bytearray()
    kept = []
    pipeline = quadriga.Pipeline(devices="cpu:2").source(chunks)
    pipeline.map(kept.append, mode="serial")
    with pytest.raises(quadriga.InvalidArgument, match=words):
        pipeline.run()


def test_memory_comes_again_when_its_chunk_has_gone():
    ring = np.zeros((2, 4))

    def by_turns():
        for number in range(6):
            ring[number % 2] = number
            yield ring[number % 2]

    pipeline = quadriga.Pipeline(devices="cpu:1", most_in_all=1, look_ahead=1)
    assert sum(int(c["array"][0]) for c in pipeline.source(by_turns(), reuses=True).results()) == 15


@pytest.mark.parametrize("devices", DEVICES)
def test_a_table_that_is_only_read_may_be_a_part(devices):
    table = np.arange(8.0)[4:]
    chunks = ({"array": np.full(4, n), "table": table} for n in range(COUNT))
    pipeline = quadriga.Pipeline(devices=devices).source(chunks, reuses=False)
    pipeline.kernel(lambda array, table: array + table, reads=["array", "table"], returns="y")
    assert [chunk["y"][0] for chunk in pipeline.results()] == [4.0 + n for n in range(COUNT)]


def test_parts_that_do_not_meet_need_no_word():
    whole = np.zeros((COUNT, 5))
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB")
    pipeline.source({"x": row} for row in whole)
    pipeline.kernel(lambda x: np.add(x, 1, out=x), updates=["x"]).run()
    assert (whole == 1).all()


def test_another_word_is_refused():
    with pytest.raises(quadriga.InvalidArgument, match="reuses is 'yes'; expected True, False"):
        quadriga.Pipeline(devices="cpu:1").source([], reuses="yes")


def test_many_kept_parts_take_little_time():
    whole = np.zeros((20_000, 4))
    pipeline = quadriga.Pipeline(devices="cpu:1").source(row for row in whole)
    begin = time.process_time()
    assert len(list(pipeline.results())) == 20_000
    assert time.process_time() - begin < 30  # hundreds if each is compared with each


def test_copies_keep_masks_and_objects():
    masked, words = np.ma.zeros(3), np.empty(1, object)

    def chunks():
        for number in range(4):
            masked[:] = number
            masked.mask = [True, False, False]
            words[0] = f"chunk {number}"
            yield {"x": masked, "word": words}

    found = list(quadriga.Pipeline(devices="cpu:1").source(chunks(), reuses=True).results())
    assert [chunk["word"][0] for chunk in found] == [f"chunk {n}" for n in range(4)]
    assert [np.ma.count_masked(chunk["x"]) for chunk in found] == [1] * 4


def test_a_refusal_leaves_arrays_writable():
    own, whole = np.zeros(4), np.zeros(8)
    chunks = [{"a": np.zeros(4), "v": whole[:4]}, {"a": own, "v": whole[:4]}]
    pipeline = quadriga.Pipeline(devices="cpu:1").source(each for each in chunks)
    with pytest.raises(quadriga.InvalidArgument, match="lies in memory"):
        list(pipeline.results())
    own += 1


def test_arrays_of_containers_stay_writable():
    arrays = {n: np.full(4, float(n)) for n in range(6)}
    pipeline = quadriga.Pipeline(devices="cpu:2", look_ahead=1).source(arrays.values())
    for chunk in pipeline.results():
        arrays[chunk.number] *= 2


def test_a_change_of_much_data_through_an_old_view_is_found():
    buffer = np.zeros((300, 500))
    view = buffer[:]

    def source():
        for number in range(COUNT):
            view[number, :] = number  # a row of three hundred
            yield buffer

    with pytest.raises(quadriga.InvalidArgument, match="or something else has changed it"):
        list(quadriga.Pipeline(devices="cpu:1", look_ahead=16).source(source()).results())


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_a_table_that_owns_its_memory_may_come_again(order):
    table = np.array(np.arange(3e4).reshape(100, 300), order="F" if order == "F" else "C")
    if order == "strided":
        table = table[:, ::2]
        table.flags.writeable = table.base.flags.writeable = False
    chunks = ({"array": np.full(4, n), "table": table} for n in range(COUNT))
    found = list(quadriga.Pipeline(devices="cpu:2").source(chunks).results())
    assert [chunk["table"][1, 1] for chunk in found] == [table[1, 1]] * COUNT


def test_memory_that_has_gone_may_change_and_come_again():
    buffer = np.zeros(LENGTH)
    view = buffer[:]
    seen = []

    def source():
        for number in range(COUNT):
            view[:] = number
            yield buffer

    lent = Lent()
    for number, array in enumerate(source()):
        chunk = Chunk(number, array)
        lent.lend(chunk)
        seen.append(float(chunk["array"][0]))
        del chunk
        lent.asked()
    assert seen == list(range(COUNT))


def test_a_source_may_wait_for_its_buffers():
    ring = [np.zeros(LENGTH) for _ in range(4)]
    free = threading.Semaphore(len(ring))

    def source():
        for number in range(20):
            assert free.acquire(timeout=240)
            ring[number % len(ring)][:] = number  # raises while a chunk has it
            yield ring[number % len(ring)]

    pipeline = quadriga.Pipeline(devices="cpu:2").source(source())
    pipeline.map(lambda chunk: {"sum": chunk["array"].sum()})
    sums = []
    for chunk in pipeline.results():
        sums.append(chunk["sum"] / LENGTH)
        if len(sums) > 1:
            free.release()  # the chunk before this one has gone
    assert sums == list(range(20))


def test_a_source_that_waits_for_another_chunk_is_refused():
    lent, buffer = Lent(), np.zeros(LENGTH)
    view = buffer[:]
    chunks = {n: Chunk(n, buffer) for n in range(3)}
    for number in (0, 1):
        lent.asked()
        lent.lend(chunks[number])
    lent.asked()
    del chunks[0]  # chunk 1 still has the memory
    view[:] = 1
    with pytest.raises(quadriga.InvalidArgument, match="of chunk 1, which was in progress"):
        lent.lend(chunks[2])


def test_memory_that_a_body_has_let_go_is_no_table():
    lent, chunks = Lent(), []
    for number in range(200):  # each array may get the memory of the one before
        array = np.full(LENGTH, float(number))
        array.flags.writeable = False
        chunks.append(Chunk(number, array))
        lent.asked()
        lent.lend(chunks[-1])
        chunks[-1].update({"array": None})


SPLITS = [Reader, into_a_slice, into_a_bytearray, through_a_view, through_a_memoryview]


def split(source, devices="cpu:2", chunks=1, **options):
    """Chunks whose parts are what a source yields."""
    pipeline = quadriga.Pipeline(devices=devices, look_ahead=16)
    pipeline.source({"n": n} for n in range(chunks))
    pipeline.flat_map(lambda chunk: source(), **options)
    return pipeline.kernel(
        lambda array, sum: np.copyto(sum, array.sum(dtype="i8")),
        reads=["array"],
        writes={"sum": lambda chunk: ((1,), "i8")},
    )


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("source", [*SPLITS, into_columns])
def test_parts_of_a_flat_map_that_reuses_memory_are_copies(source, devices):
    results = list(split(source, devices, chunks=3, reuses=True).results())
    assert [int(chunk["sum"][0]) for chunk in results] == [LENGTH * n for n in range(COUNT)] * 3


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("source", SPLITS)
def test_parts_in_memory_that_is_filled_again_end_the_run(source, devices):
    words = (
        "field 'array' of chunk 0.* lies in memory of field 'array' of chunk 0.*flat_map.*reuses"
    )
    with pytest.raises(quadriga.InvalidArgument, match=words):
        list(split(source, devices).results())


def test_a_buffer_that_a_flat_map_returns_in_a_list_is_compared_too():
    buffer = np.zeros(LENGTH)

    def one(chunk):
        buffer[:] = chunk["n"]
        return [buffer]

    pipeline = quadriga.Pipeline(devices="cpu:2").source({"n": n} for n in range(COUNT))
    with pytest.raises(quadriga.InvalidArgument, match="has changed it.*flat_map"):
        list(pipeline.flat_map(one).results())


@pytest.mark.parametrize("devices", DEVICES)
def test_windows_of_a_chunk_may_overlap_and_come_again(devices):
    def windows(chunk):
        for first in range(0, 60, 10):
            yield {"array": chunk["x"][first : first + 40], "whole": chunk["x"]}

    pipeline = quadriga.Pipeline(devices=devices).source(
        {"x": np.arange(100.0) + n} for n in range(3)
    )
    pipeline.map(lambda chunk: {"x": chunk["x"] + 1})  # an array that nobody guards
    pipeline.flat_map(windows)
    pipeline.kernel(
        lambda array, whole: array[:1] + whole[-1:], reads=["array", "whole"], returns="y"
    )
    found = [float(chunk["y"][0]) for chunk in pipeline.results()]
    assert found == [first + 101.0 + 2 * n for n in range(3) for first in range(0, 60, 10)]


def test_parts_with_another_content_need_no_word_once_those_before_have_gone():
    ring = np.zeros((3, LENGTH))
    free = threading.Semaphore(len(ring))

    def parts(chunk):
        for number in range(COUNT):
            assert free.acquire(timeout=240)
            ring[number % len(ring)] = number
            yield ring[number % len(ring)]

    pipeline = quadriga.Pipeline(devices="cpu:1").source([np.zeros(1)] * 2).flat_map(parts)
    pipeline.map(lambda chunk: {"sum": chunk["array"].sum()})
    sums = []
    for chunk in pipeline.results():
        sums.append(chunk["sum"] / LENGTH)
        if len(sums) > 1:
            free.release()  # the chunk before this one has gone
    assert sums == list(range(COUNT)) * 2


def test_parts_that_are_only_read_may_change():
    results = list(split(into_a_slice, reuses=False).results())
    assert len(results) == COUNT
    with pytest.raises(quadriga.InvalidArgument, match="reuses is 'no'; expected True, False"):
        quadriga.Pipeline(devices="cpu:1").flat_map(iter, reuses="no")


def test_parts_have_memory_of_their_own_for_what_kernels_write() -> None:
    def split(chunk):
        for i in range(5):
            yield dict(chunk) | {"x": chunk["x"] + i}

    source = [{"x": np.arange(1000.0) + i} for i in range(20)]
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=8MiB").source(source)
    pipeline.flat_map(split)
    pipeline.kernel(
        lambda x, y: np.multiply(x, 2, out=y),
        reads=["x"],
        writes={"y": lambda chunk: (chunk["x"].shape, "f8")},
    )
    found = list(pipeline.results())
    assert len(found) == 100
    assert all((chunk["y"] == 2 * chunk["x"]).all() for chunk in found)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("changes", [False, True])
def test_a_result_may_be_in_several_chunks_of_a_join(devices, changes):
    def joined(quick, slow):
        current, following = next(slow), next(slow, None)
        for chunk in quick:
            while following is not None and following["time"] <= chunk["time"]:
                current, following = following, next(slow, None)
            yield {"p": chunk["p"], "T": current["T"]}

    with quadriga.Engine(devices) as engine:
        quick = quadriga.Pipeline(engine=engine)
        quick.source({"time": t, "p": np.full(300, float(t))} for t in range(40))
        slow = quadriga.Pipeline(engine=engine)
        slow.source({"time": t, "T": np.full(300, 10.0 + t)} for t in range(0, 40, 4))
        if changes:
            slow.kernel(add_one, updates=["T"])
        both = quadriga.Pipeline(engine=engine).source(joined(quick.results(), slow.results()))
        both.kernel(lambda p, T: p + T, returns="sum")
        sums = [chunk["sum"] for chunk in both.results()]
    for time_of, found in enumerate(sums):
        assert (found == time_of + 10 + time_of // 4 * 4 + changes).all()
    assert len(sums) == 40


def add_one(T):
    T += 1


def test_a_slice_of_an_array_that_nobody_else_holds_may_come_again():
    def slices():
        part = np.arange(600.0)[100:400]
        for _ in range(5):
            yield part

    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB").source(slices())
    pipeline.reduce("array", "sum").run()
    assert pipeline.reduced["array"] == 5 * sum(range(100, 400))
