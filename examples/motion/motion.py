# SPDX-License-Identifier: BSD-3-Clause
# examples/motion/motion.py: what moves before a still background, by two runs over a clip.
"""The mean of all frames is the background; what differs from it moves."""

import clips
import numpy as np
from scipy import ndimage

import quadriga

GROUP = 16  # frames of a chunk


def differ(frames, background, moves, threshold):
    apart = abs(frames - background) > threshold  # int16, since the background is
    moves[...] = apart[..., 0] | apart[..., 1] | apart[..., 2]


def background_of(path, devices):
    """The mean frame, int16: chunks add up on their devices, and only the sums come home."""
    pipeline = quadriga.Pipeline(devices=devices).source(clips.frames(path, GROUP))
    pipeline.reduce("frames", "mean", dtype="f4").run()  # exact up to 65,000 frames
    return np.rint(pipeline.reduced["frames"]).astype("i2")


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
