# SPDX-License-Identifier: BSD-3-Clause
# examples/motion/motion.py: what moves before a still background, by two runs over a clip.
"""The mean of all frames is the background; what differs from it moves."""

import clips
import numpy as np
from scipy import ndimage

import quadriga

GROUP = 16  # frames of a chunk


def add_up(frames, total):
    """On devices, also by CuPy."""
    total[...] = frames.sum(axis=0, dtype="u4")


def differ(frames, background, moves, threshold):
    apart = abs(frames - background) > threshold  # int16, since the background is
    moves[...] = apart[..., 0] | apart[..., 1] | apart[..., 2]


def background_of(path, devices):
    """The mean frame, int16: each chunk's sum on a device, and the sum of these here."""
    pipeline = quadriga.Pipeline(devices=devices).source(clips.frames(path, GROUP))
    sums = {"total": lambda chunk: (chunk["frames"].shape[1:], "u4")}
    pipeline.kernel(add_up, arrays="cupy", reads=["frames"], writes=sums)
    total, count = 0, 0
    for chunk in pipeline.results(in_order=False):
        total = total + chunk["total"]
        count += len(chunk["frames"])
    return np.rint(total / count).astype("i2")


def mark(chunk):
    """A red frame around each thing that moves; small specks are noise."""
    boxes = []
    for frame, moves in zip(chunk["frames"], chunk["moves"], strict=True):
        things, _ = ndimage.label(ndimage.binary_opening(moves, iterations=2))
        boxes.append([(y.start, x.start, y.stop, x.stop) for y, x in ndimage.find_objects(things)])
        for top, left, bottom, right in boxes[-1]:
            frame[[top, bottom - 1], left:right] = (255, 0, 0)
            frame[top:bottom, [left, right - 1]] = (255, 0, 0)
    return {"boxes": boxes}


def annotate(path, out, devices, threshold=40):
    """Writes the clip with what moves marked.

    Returns how often each pixel moved, the boxes of each frame (top, left, bottom, right), and the
    run's figures.
    """
    background = background_of(path, devices)
    pipeline = quadriga.Pipeline(devices=devices).source(clips.frames(path, GROUP))
    pipeline.kernel(
        differ,
        arrays="cupy",
        reads=["frames"],
        constants={"background": background, "threshold": threshold},
        writes={"moves": lambda chunk: (chunk["frames"].shape[:3], "?")},
    )
    pipeline.map(mark)
    moved, boxes = np.zeros(background.shape[:2], int), []

    with clips.Writer(out, clips.rate_of(path)) as clip:

        def keep(chunk):
            clip.add(chunk["frames"])
            boxes.extend(chunk["boxes"])
            np.add(moved, chunk["moves"].sum(axis=0), out=moved)

        stats = pipeline.map(keep, mode="serial_in_order", name="encode").run()
    return moved, boxes, stats
