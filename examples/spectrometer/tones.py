# SPDX-License-Identifier: BSD-3-Clause
# examples/spectrometer/tones.py: drifting tones: a recording with some, and the search for them.
"""Tones in noise whose frequency moves by a few channels from the first spectrum to the last."""

from typing import NamedTuple

import numpy as np
from scipy.stats import gamma

NOISE = 12.0  # standard deviation of each part of a sample, in steps of the receiver


class Tone(NamedTuple):
    """A line through the spectra: its channel in the first, and channels from there to the last."""

    channel: int
    drift: int


def recording(path, channels, spectra, tones, ratio=8.0, seed=1):
    """Writes synthetic voltages; in a spectrum a tone has `ratio` times the noise of a channel."""
    random = np.random.default_rng(seed)
    amplitude = NOISE * np.sqrt(2 * ratio / channels)
    with open(path, "wb") as file:
        for number in range(spectra):
            samples = random.normal(0, NOISE, (channels, 2))
            # Whole spectra since the middle of the first one.
            time = number + (np.arange(channels) + 0.5) / channels - 0.5
            for tone in tones:
                turns = (tone.channel - channels / 2) * time
                turns += tone.drift * time**2 / (2 * (spectra - 1))
                phase = 2 * np.pi * turns
                samples += amplitude * np.stack([np.cos(phase), np.sin(phase)], axis=1)
            file.write(np.clip(np.rint(samples), -128, 127).astype(np.int8).tobytes())


def found_in(spectra, most_drift, false_alarms=1e-3):
    """The tones in spectra, an array of times and channels, by channel.

    Powers along each line are summed. The sum of a line without a tone follows a gamma
    distribution; a tone is a line above what `false_alarms` sums of all would reach, in the mean.
    Of such lines that come closer than the largest drift the strongest is the tone.
    """
    times, channels = spectra.shape
    spectra = spectra / (np.median(spectra) / np.log(2))  # the mean of the noise's powers is 1
    drifts = range(-most_drift, most_drift + 1)
    sums = np.array([summed(spectra, drift) for drift in drifts])
    threshold = gamma.isf(false_alarms / sums.size, times)
    lines = np.argwhere(sums > threshold)
    tones = []
    for line, channel in sorted(lines, key=lambda each: -sums[tuple(each)]):
        tone = Tone(int(channel), drifts[line])
        if all(abs(tone.channel - other.channel) > 2 * most_drift for other in tones):
            tones.append(tone)
    return sorted(tones)


def summed(spectra, drift):
    """Sums along the lines of a drift, by first channel; 0 for lines that leave the band."""
    times, channels = spectra.shape
    begin, end = max(0, -drift), channels - max(0, drift)
    total = np.zeros(channels)
    for time, powers in enumerate(spectra):
        shift = round(drift * time / max(times - 1, 1))
        total[begin:end] += powers[begin + shift : end + shift]
    return total
