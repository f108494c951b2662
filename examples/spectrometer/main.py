# SPDX-License-Identifier: BSD-3-Clause
# examples/spectrometer/main.py: voltages to a waterfall of long spectra, and the tones in it.
"""Runs on two emulated devices; with GPUs, `--devices cuda --rows 8192 --cols 8192`."""

import argparse
import tempfile

import four_step
import numpy as np
import tones

import quadriga
from quadriga import formats

PLANTED = [tones.Tone(700, 9), tones.Tone(2500, -6), tones.Tone(3300, 0)]


def waterfall(raw, out, shape, devices, rate=1e6, centre=1420.0):
    """Makes a filterbank file of a recording; rate in samples a second, centre in MHz."""
    channels = shape[0] * shape[1]
    width = rate / channels / 1e6
    header = formats.FilterbankHeader(
        channels, centre - width * (channels // 2), width, tsamp=channels / rate
    )
    pipeline = quadriga.Pipeline(devices=devices)
    pipeline.source(formats.voltages(raw, samples=channels))
    four_step.spectra(pipeline, shape)
    with formats.FilterbankWriter(out, header) as file:
        pipeline.map(lambda chunk: file.add(chunk["spectrum"]), mode="serial_in_order", name="file")
        return pipeline.run()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="emulated:2,memory=4MiB")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--cols", type=int, default=64)
    parser.add_argument("--spectra", type=int, default=32)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raw, out = f"{folder}/night.raw", f"{folder}/night.fil"
        tones.recording(raw, given.rows * given.cols, given.spectra, PLANTED)
        print(waterfall(raw, out, (given.rows, given.cols), given.devices))
        spectra = np.concatenate(list(formats.filterbank(out, spectra=16)))[:, 0]
    found = tones.found_in(spectra, most_drift=12)
    print("synthetic recording; tones found:", *found)
    assert found == PLANTED


if __name__ == "__main__":
    main()
