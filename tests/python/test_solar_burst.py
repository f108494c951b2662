# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_solar_burst.py: a real burst of the sun, where radiospectra and astropy are.
"""Fifteen minutes of e-Callisto at Birr, 2011-06-07: 3600 spectra of 200 channels, 92 to 20 MHz."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import quadriga

RECORDING = "tests/data/BIR_20110607_062400_10.fit"
STEP = 60  # spectra of a chunk: 15 seconds


def recording() -> tuple[np.ndarray, np.ndarray]:
    """Intensities, spectrum by spectrum, and the channels' frequencies in MHz."""
    found = importlib.util.find_spec("radiospectra")
    if found is None or found.origin is None:
        pytest.skip("radiospectra, whose data this reads, isn't installed")
    fits = pytest.importorskip("astropy.io.fits")
    with fits.open(Path(found.origin).parent / RECORDING) as file:
        return np.ascontiguousarray(file[0].data.T), np.array(file[1].data["FREQUENCY"][0])


def add_up(array, sums):
    sums[...] = array.sum(axis=0)


def excess(array, background, above):
    above[...] = array.mean(axis=0) - background


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_a_burst_begins_and_drifts_to_lower_frequencies(devices: str) -> None:
    spectra, megahertz = recording()
    channels = spectra.shape[1]

    quiet = quadriga.Pipeline(devices=devices).source(spectra, rows=STEP)
    quiet.kernel(add_up, writes={"sums": lambda chunk: (channels, "f8")})
    quiet.reduce("sums", "sum", axis=()).run()
    background = quiet.reduced["sums"] / len(spectra)
    np.testing.assert_allclose(background, spectra.mean(axis=0))

    sun = quadriga.Pipeline(devices=devices).source(spectra, rows=STEP)
    sun.kernel(
        excess,
        reads=["array"],
        constants={"background": background},
        writes={"above": lambda chunk: (channels, "f8")},
    )
    above = np.array([chunk["above"] for chunk in sun.results(in_order=True)])
    assert above.shape == (60, channels)

    # Calm until 06:26; then all channels rise for some minutes.
    whole = above.mean(axis=1)
    assert whole[:7].max() < 0 < whole[9:28].min()
    # What rises first is high, and the burst goes down by 10 MHz within a minute.
    risen = np.clip(above[[8, 12]], 0, None)
    before, after = (risen * megahertz).sum(axis=1) / risen.sum(axis=1)
    assert before > after + 10
