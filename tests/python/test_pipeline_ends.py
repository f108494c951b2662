# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_ends.py: full disks, inputs that end early, sources that don't wait.
"""What a stream does when something around it ends, or doesn't wait."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import quadriga
from quadriga import formats
from quadriga.pipeline import Chunk

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]

# As on a disk that is full after 100,000 bytes; the limit holds for all files of the process.
FULL = """
import resource, signal, sys
import numpy as np
import quadriga
from quadriga import formats

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
header = formats.FilterbankHeader(1000, 1420.0, 1e-6, tsamp=1.0)
spectra = (np.ones((2, 1000), "f4") for _ in range(50))
pipeline = quadriga.Pipeline(devices=sys.argv[2]).source(spectra)
try:
    with formats.FilterbankWriter(sys.argv[1], header) as file:
        pipeline.map(lambda chunk: file.add(chunk["array"]), mode="serial_in_order", name="file")
        pipeline.run()
except quadriga.IoError as error:
    print(error, error.__cause__.__notes__)
"""


@pytest.mark.parametrize("devices", DEVICES)
def test_a_full_disk_is_named_and_leaves_no_file(tmp_path: Path, devices: str) -> None:
    out = tmp_path / "waterfall.fil"
    told = subprocess.run(
        [sys.executable, "-c", FULL, out, devices], capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr
    assert f"{out}: can't be written: File too large" in told.stdout
    assert "in stage 'file' at chunk " in told.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("devices", DEVICES)
def test_an_input_that_is_cut_while_it_is_read_ends_the_run(tmp_path: Path, devices: str) -> None:
    raw = tmp_path / "night.raw"
    np.arange(64 * 1000, dtype=np.int16).tofile(raw)

    def cut(chunk: Chunk) -> None:
        if chunk.number == 0:
            with open(raw, "r+b") as file:
                file.truncate(20 * 2000)

    chunks = formats.voltages(raw, samples=1000)
    pipeline = quadriga.Pipeline(devices=devices, look_ahead=1).source(chunks)
    pipeline.map(cut, mode="serial_in_order")
    seen = []
    with pytest.raises(OSError, match=r"night\.raw") as raised:
        for chunk in pipeline.results():
            seen.append(chunk.number)
    assert seen == list(range(len(seen)))
    assert len(seen) < 64
    assert raised.value.__notes__ == ["in the source"]


@pytest.mark.parametrize("devices", DEVICES)
def test_a_source_that_drops_never_waits(devices: str) -> None:
    ended = threading.Event()

    def live() -> Iterator[dict[str, object]]:
        for number in range(100):
            yield {"x": np.full(100, float(number))}
        ended.set()

    def slow(chunk: Chunk) -> None:
        assert ended.wait(240), "the source was kept waiting"
        seen.append(chunk.number)

    seen: list[int] = []
    pipeline = quadriga.Pipeline(devices=devices, on_full="drop", look_ahead=4).source(live())
    pipeline.map(slow, mode="serial_in_order")
    stats = pipeline.run()
    assert 0 < len(seen) < 100
    assert seen == sorted(seen)
    assert (stats.chunks, stats.missed) == (len(seen), 100 - len(seen))
    assert f"{stats.missed} dropped at the source" in str(stats)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(quadriga.InvalidArgument, match="on_full is 'skip'"):
        quadriga.Pipeline(on_full="skip")


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("way", ["run", "results"])
def test_a_run_that_was_stopped_before_it_began_ends_without_a_chunk(
    devices: str, way: str
) -> None:
    def endless() -> Iterator[np.ndarray]:
        while True:
            asked.append(1)
            assert len(asked) < 10_000, "nobody stops it"
            yield np.ones(3)

    asked: list[int] = []
    pipeline = quadriga.Pipeline(devices=devices).source(endless())
    pipeline.stop()
    chunks = pipeline.run().chunks if way == "run" else len(list(pipeline.results()))
    assert chunks == 0
    assert asked == []


def test_names_of_fields_that_a_body_returns_are_str() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").source([np.ones(3)])
    pipeline.map(lambda chunk: {1: np.ones(2)}, name="odd")
    with pytest.raises(quadriga.errors.InvalidType, match="named by str, got 1") as raised:
        pipeline.run()
    assert raised.value.__notes__ == ["in stage 'odd' at chunk 0"]
