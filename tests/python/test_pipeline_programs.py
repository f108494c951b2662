# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_programs.py: whole programs on streams, as users write them.
"""A database search and a spectrometer, in the fewest statements that say what they do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.fft import fft

import quadriga
from quadriga import CudaSource
from quadriga.formats import fasta, voltages

DEVICES = ["cpu:2", "emulated:2,memory=4MiB"]
ROWS, COLS, SPECTRA = 32, 64, 5
MATCHES = """
__global__ void matches(quadriga::Tile<const unsigned char> residues,
                        quadriga::Tile<const long long> starts,
                        quadriga::Tile<const unsigned char> queries, quadriga::Tile<int> score) {}
"""
UNPACK = "__global__ void unpack(quadriga::Tile<const signed char> v, quadriga::Tile<float2> x) {}"
TWIDDLE = "__global__ void twiddle(quadriga::Tile<float2> x) {}"


def matches(residues, starts, queries, score):
    for record, (begin, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        for number, letter in enumerate(queries):
            score[record, number] = np.count_nonzero(residues[begin:end] == letter)


class Hits:
    def __init__(self) -> None:
        self.best: dict[str, list[int]] = {}

    def add(self, chunk: quadriga.pipeline.Chunk) -> None:
        self.best.update(zip(chunk["names"], chunk["score"].tolist(), strict=True))


@pytest.mark.parametrize("devices", DEVICES)
def test_a_search_of_a_database(
    devices: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = {f"r{i}": "ARN" * (i % 5) + "D" * (i + 1) for i in range(20)}
    path = tmp_path / "sprot.fa"
    path.write_text("".join(f">{name}\n{letters}\n" for name, letters in records.items()))
    queries, hits = np.frombuffer(b"AD", np.uint8), Hits()

    search = quadriga.Pipeline(memory="1MiB", devices=devices)
    search.source(fasta(path, records=8))
    search.kernel(
        matches,
        cuda=CudaSource(MATCHES),
        reads=["residues", "starts"],
        constants={"queries": queries},
        writes={"score": lambda c: ((len(c["starts"]) - 1, len(queries)), "i4")},
    )
    search.map(hits.add, mode="serial")
    print(search.run(progress=True))

    assert hits.best == {name: [text.count("A"), text.count("D")] for name, text in records.items()}
    assert capsys.readouterr().out.startswith("3 chunks in ")


def unpack(voltages, x):
    x[...] = (voltages[:, 0] + 1j * voltages[:, 1]).reshape(x.shape)


def twiddle(x):
    x *= np.exp(-2j * np.pi / x.size * np.outer(np.arange(len(x)), np.arange(x.shape[1])))


def power(x):
    return (x.real**2 + x.imag**2).T.reshape(-1)


@pytest.mark.parametrize("devices", DEVICES)
def test_a_spectrometer(devices: str, tmp_path: Path) -> None:
    pairs = np.random.default_rng(1).integers(-100, 100, (SPECTRA, ROWS * COLS, 2)).astype("i1")
    path = tmp_path / "night.raw"
    path.write_bytes(pairs.tobytes())
    waterfall = []

    sky = quadriga.Pipeline(memory="4MiB", devices=devices)
    sky.source(voltages(path, samples=ROWS * COLS))
    sky.kernel(unpack, cuda=CudaSource(UNPACK), writes={"x": ((ROWS, COLS), "c8")})
    sky.kernel(lambda x: fft(x, axis=0), arrays="cupy", returns="x")
    sky.kernel(twiddle, cuda=CudaSource(TWIDDLE), updates=["x"])
    sky.kernel(lambda x: power(fft(x, axis=1)), arrays="cupy", returns="spectrum")
    for chunk in sky.results(in_order=True):
        waterfall.append(chunk["spectrum"])

    whole = abs(np.fft.fft(pairs[..., 0] + 1j * pairs[..., 1])) ** 2
    np.testing.assert_allclose(waterfall, whole, rtol=1e-3, atol=1e-4 * whole.max())


@pytest.mark.parametrize("wrong", [(4, 4), ["x"], "c8", ((4, 4), "c8", 1), (4, None), None])
def test_a_shape_is_a_pair_or_a_function(wrong: object) -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1")
    with pytest.raises(quadriga.errors.InvalidType, match="expected .shape, dtype., or a function"):
        pipeline.kernel(lambda array, x: None, writes={"x": wrong})


@pytest.mark.parametrize("wrong", [(4, 4), ("four", "f8"), 4])
def test_what_a_shapes_function_returns_is_named(wrong: object) -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").source([np.zeros(4)])
    pipeline.kernel(lambda array, x: None, writes={"x": lambda chunk: wrong})
    with pytest.raises(quadriga.InvalidArgument, match="shape of 'x' must be .shape, dtype.: "):
        pipeline.run()
