# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_real_voltages.py: spectra of real recordings, where baseband is installed.
"""Five milliseconds of Arecibo in eight channels of 16 MHz, and a damaged file of DRAO's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.fft as fft

import quadriga

DEVICES = ["cpu:2", "emulated:2,memory=8MiB"]
LENGTH = 1000  # samples of a spectrum: bins of 32 kHz


def voltages(name: str, **options: object) -> Iterator[np.ndarray]:
    """Blocks of 16 spectra, as the package decodes them."""
    baseband = pytest.importorskip("baseband")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # astropy's, of dates
        with baseband.open(name, "rs", **options) as file:
            file.seek(640)  # a header overwrites what comes before
            while file.tell() + 16 * LENGTH <= file.shape[0]:
                yield np.ascontiguousarray(file.read(16 * LENGTH).T)


def recording(name: str) -> str:
    data = pytest.importorskip("baseband.data")
    return str(getattr(data, name))


def arecibo() -> Iterator[np.ndarray]:
    units = pytest.importorskip("astropy.units")
    given = {"format": "mark4", "ntrack": 64, "decade": 2010, "sample_rate": 32 * units.MHz}
    return voltages(recording("SAMPLE_MARK4"), **given)


def powers(array, sums):
    blocks = array.reshape(array.shape[0], -1, LENGTH)
    sums[...] = (abs(np.fft.rfft(blocks, axis=2)) ** 2).sum(axis=1)


@pytest.mark.parametrize("devices", DEVICES)
def test_lines_stand_out_in_the_channel_that_has_them(devices: str) -> None:
    pytest.importorskip("baseband")
    pipeline = quadriga.Pipeline(devices=devices).source(arecibo())
    shape = (8, LENGTH // 2 + 1)
    pipeline.kernel(powers, reads=["array"], writes={"sums": lambda chunk: (shape, "f8")})
    pipeline.reduce("sums", "sum", axis=()).run()
    found = pipeline.reduced["sums"]

    whole = np.concatenate(list(arecibo()), axis=1).reshape(8, -1, LENGTH)
    expected = (abs(fft.rfft(whole, axis=2)) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4)

    ratio = found[:, 10:] / np.median(found[:, 10:], axis=1, keepdims=True)
    assert {156, 194} <= set(np.flatnonzero(ratio[6] > 15) + 10)
    assert ratio[[1, 2, 3, 4, 5]].max() < 3


@pytest.mark.parametrize("devices", DEVICES)
def test_a_damaged_file_ends_the_run_and_is_the_sources_failure(devices: str) -> None:
    pytest.importorskip("baseband")
    damaged = voltages(recording("SAMPLE_DRAO_CORRUPT"), format="vdif")
    pipeline = quadriga.Pipeline(devices=devices).source(damaged)
    with pytest.raises(Exception) as raised:
        pipeline.map(lambda chunk: None).run()
    assert raised.value.__notes__ == ["in the source"]
