# SPDX-License-Identifier: BSD-3-Clause
# examples/motion/clips.py: video files as chunks of frames, by PyAV.
"""Frames are uint8 arrays of shape (height, width, 3), red first."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np


def frames(path, count):
    """Chunks of at most `count` frames, decoded when they are asked for."""
    with av.open(str(path)) as container:
        group = []
        for frame in container.decode(video=0):
            group.append(frame.to_ndarray(format="rgb24"))
            if len(group) == count:
                yield {"frames": np.stack(group)}
                group = []
        if group:
            yield {"frames": np.stack(group)}


def rate_of(path):
    """Frames a second."""
    with av.open(str(path)) as container:
        return container.streams.video[0].average_rate


class Writer:
    """Encodes frames of one size, in the order in which they are added.

    The file takes its name when the `with` block ends well, and is removed if it doesn't.
    """

    def __init__(self, path, rate):
        self._path = Path(path)
        self._part = self._path.with_stem(self._path.stem + ".part")
        self._container = av.open(str(self._part), "w")
        self._stream = self._container.add_stream("mpeg4", rate=Fraction(rate))
        self._stream.bit_rate = 4_000_000
        self._sized = False

    def add(self, several):
        if not self._sized:
            self._stream.height, self._stream.width = several.shape[1:3]
            self._sized = True
        for each in several:
            frame = av.VideoFrame.from_ndarray(each, format="rgb24")
            self._container.mux(self._stream.encode(frame))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self._container.mux(self._stream.encode())
        self._container.close()
        if kind is None:
            self._part.replace(self._path)
        else:
            self._part.unlink(missing_ok=True)


def place_of(number):
    """Top and left edge of the synthetic clip's square in a frame."""
    return 40 + number // 4, 10 + 2 * number


def synthetic(path, count=100, seed=1):
    """A square of 24 by 24 that crosses a noisy, still picture of 128 by 256."""
    random = np.random.default_rng(seed)
    still = np.kron(random.integers(60, 160, (8, 16, 3)), np.ones((16, 16, 1)))
    with Writer(path, 25) as clip:
        for number in range(count):
            frame = still + random.normal(0, 3, still.shape)
            top, left = place_of(number)
            frame[top : top + 24, left : left + 24] = (250, 240, 20)
            clip.add(np.clip(frame, 0, 255).astype(np.uint8)[np.newaxis])
