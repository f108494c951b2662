# SPDX-License-Identifier: BSD-3-Clause
# examples/stream.py: a stream larger than memory: spectra of a long recording, chunk by chunk.
"""Finds a faint tone in a noisy recording that is made, transformed and averaged in chunks."""

import numpy as np

import quadriga

LENGTH, TONE = 256, 37  # samples of a spectrum, and the bin of the tone


def recording(chunks):
    """Chunks of unequal length, as a file's blocks may be; a tone well below the noise."""
    random = np.random.default_rng(1)
    for _ in range(chunks):
        rows = int(random.integers(20, 200))
        samples = random.normal(size=(rows, LENGTH))
        samples += 0.4 * np.sin(2 * np.pi * TONE / LENGTH * np.arange(LENGTH))
        yield {"samples": samples, "rows": rows}


def power(samples, spectra):
    """On each device; several kernels in a row would stay there."""
    spectra[...] = np.abs(np.fft.rfft(samples, axis=1)) ** 2


def shape_of_spectra(chunk):
    return (chunk["rows"], LENGTH // 2 + 1), "f8"


def main():
    total, rows = np.zeros(LENGTH // 2 + 1), 0
    pipeline = quadriga.Pipeline("1MiB", devices="emulated:2,memory=4MiB", host_memory="8MiB")
    pipeline.source(recording(chunks=60))
    pipeline.kernel(power, reads=["samples"], writes={"spectra": shape_of_spectra})
    for chunk in pipeline.results(in_order=False):
        total += chunk["spectra"].sum(axis=0)
        rows += chunk["rows"]
    mean = total / rows
    print(pipeline.stats())
    found = mean[1:].argmax() + 1
    print(f"the tone is in bin {found}, {mean.max() / np.median(mean):.0f} times the noise")
    assert found == TONE


if __name__ == "__main__":
    main()
