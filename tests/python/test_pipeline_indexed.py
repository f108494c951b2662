# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_indexed.py: sources that tell sizes before content.
"""Chunks by number: the order in which they are read, and sizes that are wrong."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quadriga
from quadriga import InvalidArgument
from quadriga.errors import InvalidType, IoError
from quadriga.formats import fasta
from quadriga.pipeline import IndexedSource

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]
SIZES = [30, 10, 50, 20, 40]


class Reads:
    """Chunks by number; notes which were asked for."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.numbers: list[int] = []

    def __getitem__(self, number: int) -> np.ndarray[Any, Any]:
        self.numbers.append(number)
        return np.full(self.sizes[number], float(number))


def doubling(devices: str, **options: Any) -> quadriga.Pipeline:
    return quadriga.Pipeline(devices=devices, look_ahead=2, **options)


def double(array, y):
    y[:] = 2 * array


def add_double(pipeline: quadriga.Pipeline) -> None:
    pipeline.kernel(double, writes={"y": lambda c: (c["array"].shape, "f8")})


@pytest.mark.parametrize("devices", DEVICES)
def test_chunks_are_read_as_the_order_takes_them(devices: str) -> None:
    reads, arrived = Reads(SIZES), {}
    pipeline = doubling(devices, order="largest").source(reads, sizes=SIZES)
    add_double(pipeline)
    pipeline.map(lambda c: arrived.update({c.number: c["y"].copy()}), mode="serial")
    assert pipeline.run().chunks == 5
    assert reads.numbers == [2, 4, 0, 3, 1]
    assert {n: y.tolist() for n, y in arrived.items()} == {
        n: [2.0 * n] * size for n, size in enumerate(SIZES)
    }


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("needs", ["results", "stage", "flat_map"])
def test_chunks_are_read_in_order_where_somebody_needs_it(devices: str, needs: str) -> None:
    reads, order = Reads(SIZES), []
    pipeline = doubling(devices, order="largest").source(reads, sizes=SIZES)
    add_double(pipeline)
    if needs == "stage":
        pipeline.map(lambda c: order.append(c.number), mode="serial_in_order").run()
    elif needs == "flat_map":
        pipeline.flat_map(lambda c: [c["y"]]).map(lambda c: order.append(c.number), mode="serial")
        pipeline.run()
        order.sort()
    else:
        order = [chunk.number for chunk in pipeline.results(in_order=True)]
    assert order == reads.numbers == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("devices", DEVICES)
def test_results_as_completed_need_no_order(devices: str) -> None:
    reads = Reads(SIZES)
    pipeline = doubling(devices, order="smallest").source(reads, sizes=SIZES)
    add_double(pipeline)
    assert sorted(c.number for c in pipeline.results(in_order=False)) == [0, 1, 2, 3, 4]
    assert reads.numbers == [1, 3, 0, 4, 2]


@pytest.mark.parametrize("devices", DEVICES)
def test_wrong_sizes_change_no_result(devices: str) -> None:
    total = quadriga.Pipeline(devices=devices, host_memory="64KiB", look_ahead=3)
    total.source(lambda number: np.full(number * 100, 1.0), sizes=range(20, 0, -1))
    total.reduce("array", "sum")
    stats = total.run()
    assert total.reduced["array"] == 100 * sum(range(20))
    assert stats.most_host_bytes <= 2**16


@pytest.mark.parametrize("devices", DEVICES)
def test_a_chunk_that_is_not_there_ends_the_run_behind_those_before(devices: str) -> None:
    reads, arrived = Reads([1, 2, 3]), []
    pipeline = doubling(devices, order="largest").source(reads, sizes=[10, 20, 30, 40, 5])
    add_double(pipeline)
    pipeline.map(lambda c: arrived.append(c.number), mode="serial")
    with pytest.raises(InvalidArgument, match="sizes tell of chunk 3, and the source has none"):
        pipeline.run()
    assert sorted(arrived) == [0, 1, 2]
    assert reads.numbers == [3, 2, 1, 0]


@pytest.mark.parametrize("devices", DEVICES)
def test_what_reading_a_chunk_raises_comes_behind_the_chunks_before(devices: str) -> None:
    arrived = []

    def read(number: int) -> np.ndarray[Any, Any]:
        if number in (1, 3):
            raise OSError(f"no sector {number}")
        return np.full(3, float(number))

    pipeline = doubling(devices, order="largest").source(read, sizes=[1, 2, 3, 4])
    pipeline.map(lambda c: arrived.append(c.number), mode="serial")
    with pytest.raises(OSError, match="no sector 1") as found:
        pipeline.run()
    assert found.value.__notes__ == ["reading chunk 1", "in the source"]
    assert 0 in arrived
    assert 3 not in arrived


@pytest.mark.parametrize("devices", DEVICES)
def test_the_first_chunk_that_fails_is_raised_wherever_it_fails(devices: str) -> None:
    def read(number: int) -> np.ndarray[Any, Any]:
        if number == 0:
            raise OSError("no sector 0")
        return np.full(3, float(number))

    pipeline = doubling(devices, order="largest").source(read, sizes=[1, 2])
    pipeline.map(lambda c: 1 / 0, mode="serial", name="divide")
    with pytest.raises(OSError, match="no sector 0"):
        pipeline.run()


def test_the_end_is_not_known_while_the_last_chunk_waits_for_room() -> None:
    """Small chunks come first then; once all are known, the largest would."""
    lengths, order = [559, 2431, 1597, 1852, 6136], []

    def note(array: Any) -> None:
        order.append(int(array[0]))

    machine = "emulated:1,memory=1MiB,h2d=20MB/s,d2h=20MB/s"
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine, host_memory=74_448)
        pipeline.source(lambda number: np.full(lengths[number], float(number)), sizes=lengths)
        pipeline.kernel(note, updates=["array"], cost=quadriga.Cost.of_seconds(1.17e-3))
        assert [chunk.number for chunk in pipeline.results(in_order=True)] == [0, 1, 2, 3, 4]
    assert order == [0, 2, 1, 3, 4]


def test_a_million_sizes_are_an_array_and_no_list() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1", look_ahead=1)
    pipeline.source(lambda number: np.zeros(1), sizes=np.ones(1_000_000))
    tracemalloc.start()
    try:
        for _ in pipeline.results(in_order=False):
            break
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4e6, "a list of as many floats has 32 MB"


def test_a_list_keeps_its_arrays() -> None:
    arrays = [np.full(n, float(n)) for n in (3, 1, 2)]
    pipeline = doubling("emulated:2,memory=1MiB").source(arrays, sizes=[len(a) for a in arrays])
    pipeline.reduce("array", "sum").run()
    assert pipeline.reduced["array"] == 14
    assert all(array.flags.writeable for array in arrays)


@pytest.mark.parametrize(
    ("source", "sizes", "error", "message"),
    [
        (iter([np.zeros(1)]), [1], InvalidType, "gives any chunk by its number"),
        (np.zeros((4, 2)), [1, 2], InvalidType, "gives any chunk by its number"),
        ({"x": np.zeros(1)}, [1], InvalidType, "gives any chunk by its number"),
        ([np.zeros(1)], [1, 2], InvalidArgument, "2 sizes are given for 1 chunks"),
        ([np.zeros(1)], [], InvalidArgument, "0 sizes are given for 1 chunks"),
        ([np.zeros(1)], [-1], InvalidArgument, "size of chunk 0 is -1.0"),
        ([np.zeros(1)], [float("nan")], InvalidArgument, "size of chunk 0 is nan"),
        ([np.zeros(1)], [[1]], InvalidType, "sizes are numbers, one for each chunk"),
        ([np.zeros(1)], ["large"], InvalidType, "sizes are numbers, one for each chunk"),
        (IndexedSource([np.zeros(1)], [1]), [1], InvalidArgument, "expected no others"),
    ],
)
def test_what_is_no_index_is_refused(
    source: Any, sizes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        quadriga.Pipeline(devices="cpu:1").source(source, sizes=sizes)


@pytest.mark.parametrize("devices", DEVICES)
def test_an_estimate_reads_the_smallest_chunk_and_the_largest(devices: str) -> None:
    sizes = np.random.default_rng(3).integers(1, 2000, 30).tolist()
    reads = Reads(sizes)
    pipeline = quadriga.Pipeline(devices=devices).source(reads, sizes=sizes)
    add_double(pipeline)
    pipeline.map(lambda c: None, mode="serial", name="write")
    pipeline.takes("write", lambda c: 1e-4 * c["array"].size)
    found = pipeline.estimate(seconds={"double": 1e-3})
    assert reads.numbers == [int(np.argmin(sizes)), int(np.argmax(sizes))]
    expected = pipeline.estimate([np.zeros(size) for size in sizes], {"double": 1e-3})
    assert found.limit == expected.limit == "write"
    assert found.seconds == pytest.approx(expected.seconds) == pytest.approx(1e-4 * sum(sizes))
    assert found.one_device_more == pytest.approx(expected.one_device_more)


def test_an_estimate_needs_chunks_or_sizes() -> None:
    for source in ([], IndexedSource([], [])):
        pipeline = quadriga.Pipeline(devices="cpu:1").source(source)
        with pytest.raises(InvalidArgument, match="needs chunks, or a source with sizes"):
            pipeline.estimate()


@pytest.mark.parametrize("devices", DEVICES)
def test_an_estimate_by_sizes_comes_before_the_run(devices: str) -> None:
    reads = Reads([1, 2, 3])
    pipeline = quadriga.Pipeline(devices=devices).source(reads, sizes=[1, 2, 3])
    raised = []

    def ask(chunk: object) -> None:
        with pytest.raises(InvalidArgument, match="comes before the run"):
            pipeline.estimate()
        raised.append(chunk)

    pipeline.map(ask, mode="serial")
    pipeline.run()
    assert len(raised) == len(reads.numbers) == 3


def test_live_data_have_no_index() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1", on_full="drop").source([np.zeros(1)], sizes=[1])
    with pytest.raises(InvalidArgument, match="on_full is for live data"):
        pipeline.run()


TEXT = b">a first\nMKTA\nYI\n\n> none\nGG*\n>c\nACDEF\nGHI\n"
INDEX = "a\t6\t9\t4\t5\nnone\t3\t25\t3\t4\nc\t8\t32\t5\t6\n"


def files(folder: Path, text: bytes = TEXT, index: str = INDEX) -> Path:
    path = folder / "some.fa"
    path.write_bytes(text)
    Path(f"{path}.fai").write_text(index)
    return path


@pytest.mark.parametrize("records", [1, 2, 3, 10])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_an_index_gives_the_chunks_of_its_file(tmp_path: Path, records: int, ends: bytes) -> None:
    texts = {f"r{i}": b"ACDEFGHIK"[: 1 + i % 9] * (1 + i) for i in range(7)}
    body, index = b"", ""
    for name, letters in texts.items():
        body += b">" + name.encode() + b" of seven" + ends
        width = min(10, len(letters))
        index += f"{name}\t{len(letters)}\t{len(body)}\t{width}\t{width + len(ends)}\n"
        body += b"".join(letters[at : at + 10] + ends for at in range(0, len(letters), 10))
    path = files(tmp_path, body, index)
    source = fasta(path, records, index=True)
    read = list(fasta(path, records))
    assert len(source) == len(read)
    for number in reversed(range(len(read))):
        for name in ("residues", "starts", "names"):
            np.testing.assert_array_equal(source[number][name], read[number][name])
    bytes_of = [chunk["residues"].nbytes + chunk["starts"].nbytes for chunk in read]
    assert source.sizes.tolist() == bytes_of
    assert len(fasta(path, records, index=f"{path}.fai")) == len(read)


@pytest.mark.parametrize("devices", DEVICES)
def test_a_search_by_an_index(tmp_path: Path, devices: str) -> None:
    found: dict[str, int] = {}
    pipeline = quadriga.Pipeline(devices=devices)
    pipeline.source(fasta(files(tmp_path), records=1, index=True))
    pipeline.map(lambda c: found.update({c["names"][0]: c["residues"].size}), mode="serial")
    pipeline.run()
    assert found == {"a": 6, "none": 3, "c": 8}


@pytest.mark.parametrize(
    ("text", "index", "message"),
    [
        (TEXT, INDEX.replace("none", "other"), "doesn't fit .* at record 'other'"),
        (TEXT, INDEX.replace("\t3\t25\t3", "\t2\t25\t3"), "doesn't fit .* at record 'none'"),
        (TEXT, "".join(INDEX.splitlines(True)[:2]), "goes on behind its last record"),
        (TEXT, INDEX + "d\t8\t99\t8\t9\n", "doesn't fit .* at record 'd'"),
        (TEXT, INDEX.replace("25", "32"), "doesn't fit .* at record 'c'"),
        (TEXT, INDEX + f"d\t{2**62}\t99\t1\t{2**62}\n", "doesn't fit .* at record 'd'"),
        (TEXT, INDEX + "d\t8\t-99\t8\t9\n", "doesn't fit .* at record 'd'"),
        (TEXT.replace(b"\n> none", b" > none"), INDEX, "record 'a' has '>' at position 7"),
        (TEXT.replace(b"\n> none", b"\n  none"), INDEX, "doesn't fit .* at record 'a'"),
        (TEXT, "a\t6\tnine\t4\t5\n", "can't be read as an index"),
        (TEXT, "a\t6\n", "can't be read as an index"),
        (TEXT, "", "goes on behind its last record"),
    ],
)
def test_an_index_that_does_not_fit(tmp_path: Path, text: bytes, index: str, message: str) -> None:
    path = files(tmp_path, text, index)
    with pytest.raises(IoError, match=message):
        list(fasta(path, records=3, index=True))


def test_an_index_that_is_older_or_missing(tmp_path: Path) -> None:
    path = files(tmp_path)
    os.utime(f"{path}.fai", ns=(1, os.stat(path).st_mtime_ns - 1))
    with pytest.raises(IoError, match="is older than .*; make it again"):
        fasta(path, records=1, index=True)
    with pytest.raises(IoError, match="none.fai: can't be read"):
        fasta(path, records=1, index=tmp_path / "none.fai")
    with pytest.raises(InvalidType, match="expected the path of a .fai file, or True"):
        fasta(path, records=1, index=3)  # type: ignore[call-overload]
