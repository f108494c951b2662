# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_spectrometer.py: the spectrometer of examples: transform, file, tones, kernels.
"""All recordings are synthetic. ``QUADRIGA_TEST_CHANNELS``, a power of two, says how long the
longest transform is, 2**18 by default; 2**26 takes half a minute.
"""

import os

import four_step
import numpy as np
import pytest
import tones
from gpus_of_tests import on_gpu
from kernels_on_host import compile_for_gpu, run_on_host
from scipy import fft

import quadriga
from quadriga import formats
from quadriga.errors import IoError

DEVICES = ["cpu:2", "emulated:2,memory=16MiB"]
SHAPES = [(128, 128), (64, 256), (256, 64)]
CHANNELS = int(os.environ.get("QUADRIGA_TEST_CHANNELS", 2**18))
PLANTED = [tones.Tone(3000, 16), tones.Tone(9000, -9), tones.Tone(12345, 0)]


def pairs_of(size, chunks, seed=1):
    random = np.random.default_rng(seed)
    return [random.integers(-128, 128, (size, 2), np.int8) for _ in range(chunks)]


def complex_of(pairs):
    return pairs[:, 0] + 1j * pairs[:, 1]


def distance(found, expected):
    """Of the norm of what is expected, in double precision."""
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def assert_transforms(devices, shape, chunks):
    given = pairs_of(shape[0] * shape[1], chunks)
    pipeline = quadriga.Pipeline(devices=devices).source(given)
    four_step.transform(pipeline, shape)
    four_step.ordered(pipeline, shape)
    for pairs, chunk in zip(given, pipeline.results(), strict=True):
        assert distance(chunk["bins"], fft.fft(complex_of(pairs))) < 1e-6
        assert "x" not in chunk


def assert_powers(devices, shape):
    [given] = pairs_of(shape[0] * shape[1], 1)
    pipeline = quadriga.Pipeline(devices=devices).source([given])
    four_step.spectra(pipeline, shape)
    [chunk] = pipeline.results()
    expected = np.abs(fft.fftshift(fft.fft(complex_of(given)))) ** 2
    assert distance(chunk["spectrum"], expected) < 1e-6


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_four_steps_are_scipys_fft(devices, shape):
    assert_transforms(devices, shape, chunks=3)


@pytest.mark.parametrize("devices", ["cpu:2", f"emulated:1,memory={24 * CHANNELS}"])
def test_long_transforms_are_scipys_fft(devices):
    rows = 1 << (CHANNELS.bit_length() // 2)
    assert_transforms(devices, (rows, CHANNELS // rows), chunks=1)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_spectra_go_from_the_lowest_frequency_to_the_highest(devices, shape):
    assert_powers(devices, shape)


@pytest.mark.parametrize("devices", DEVICES)
def test_columns_then_rows_are_a_plain_transform_of_a_matrix(devices):
    random = np.random.default_rng(1)
    given = [random.standard_normal((96, 80)) + 1j * np.ones(80) for _ in range(4)]
    pipeline = quadriga.Pipeline(devices=devices)
    pipeline.source({"array": each.astype("c8")} for each in given)
    four_step.two_dimensional(pipeline)
    for matrix, chunk in zip(given, pipeline.results(), strict=True):
        assert distance(chunk["array"], fft.fft2(matrix)) < 1e-6


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=256KiB"])
def test_parts_of_one_matrix_are_transformed_in_place_on_smaller_devices(devices):
    random = np.random.default_rng(2)
    matrix = (random.standard_normal((256, 512)) + 1j).astype("c8")
    expected = fft.fft2(matrix)

    def columns(x):
        x[...] = fft.fft(x, axis=0)

    def rows(x):
        x[...] = fft.fft(x, axis=1)

    with quadriga.Engine(devices) as engine:
        phases = [
            (columns, [matrix[:, i : i + 16] for i in range(0, 512, 16)]),
            (rows, [matrix[i : i + 8] for i in range(0, 256, 8)]),
        ]
        for transform, parts in phases:
            pipeline = quadriga.Pipeline(engine=engine).source({"x": part} for part in parts)
            assert pipeline.kernel(transform, updates=["x"]).run().chunks == 32
    assert distance(matrix, expected) < 1e-6


def waterfall(folder, shape, devices, planted, seed):
    """Spectra of a recording, by way of files."""
    raw, out = folder / "night.raw", folder / "night.fil"
    channels = shape[0] * shape[1]
    tones.recording(raw, channels, 32, planted, seed=seed)
    pipeline = quadriga.Pipeline(devices=devices).source(formats.voltages(raw, samples=channels))
    four_step.spectra(pipeline, shape)
    header = formats.FilterbankHeader(channels, 1420.0, 1e-6, tsamp=1.0)
    with formats.FilterbankWriter(out, header) as file:
        pipeline.map(lambda chunk: file.add(chunk["spectrum"]), mode="serial_in_order").run()
    return np.concatenate(list(formats.filterbank(out, spectra=10)))[:, 0]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("planted", [PLANTED, []], ids=["tones", "noise"])
def test_planted_tones_are_found_to_the_bin_and_no_others(tmp_path, planted, seed):
    spectra = waterfall(tmp_path, (128, 128), "emulated:2,memory=8MiB", planted, seed)
    assert spectra.shape == (32, 128 * 128)
    assert tones.found_in(spectra, most_drift=20) == planted


def test_one_spectrum_does_not_show_a_faint_tone(tmp_path):
    faint = [tones.Tone(5000, 0)]
    raw = tmp_path / "night.raw"
    tones.recording(raw, 128 * 128, 32, faint, ratio=3.0)
    spectra = []
    for pairs in formats.voltages(raw, samples=128 * 128):
        spectra.append(np.abs(fft.fftshift(fft.fft(complex_of(pairs)))) ** 2)
    assert tones.found_in(np.array(spectra[:1]), most_drift=0) == []
    assert tones.found_in(np.array(spectra), most_drift=4) == faint


def test_a_truncated_recording_leaves_no_file(tmp_path):
    raw, out = tmp_path / "night.raw", tmp_path / "night.fil"
    raw.write_bytes(bytes(2 * 4096 * 3 - 1))
    header = formats.FilterbankHeader(4096, 1420.0, 1e-6, tsamp=1.0)
    with pytest.raises(IoError, match="truncated"), formats.FilterbankWriter(out, header):
        formats.voltages(raw, samples=4096)
    assert not out.exists()


SHAPE = (8, 16)
X = (np.random.default_rng(1).standard_normal((2, *SHAPE)) * [[[1]], [[1j]]]).sum(axis=0)
KERNELS = {
    "unpack": (["read", "write"], lambda: [*pairs_of(128, 1), np.empty(SHAPE, "c8")]),
    "twiddle": (["update"], lambda: [X.astype("c8")]),
    "power": (["read", "write"], lambda: [X.astype("c8"), np.empty(128, "f4")]),
    "in_order": (["read", "write"], lambda: [X.astype("c8"), np.empty(128, "c8")]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_for_gpus_compute_what_those_for_hosts_do(tmp_path, name):
    access, operands = KERNELS[name]
    found, expected = operands(), operands()
    run_on_host(quadriga.CudaSource(four_step.KERNELS, name), tmp_path, found, access)
    getattr(four_step, name)(*expected)
    assert distance(found[-1], expected[-1]) < 1e-6


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_for_gpus_compile(name):
    access, operands = KERNELS[name]
    source = quadriga.CudaSource(four_step.KERNELS, name)
    assert compile_for_gpu(source, operands(), access).code


@on_gpu
@pytest.mark.parametrize("shape", [*SHAPES, (2048, 4096)])
def test_a_gpu_transforms_alike(shape):
    pytest.importorskip("cupy")
    assert_transforms("cuda:1,memory=1GiB", shape, chunks=4)
    assert_powers("cuda:1,memory=1GiB", shape)
