# SPDX-License-Identifier: BSD-3-Clause
# examples/motion/main.py: a clip with what moves in it marked, and a picture of where it moved.
"""Without a clip, it makes one. The camera must stand still: the mean is the background."""

import argparse
import tempfile
from pathlib import Path

import clips
import motion
from matplotlib import image


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clip", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("marked.mp4"))
    parser.add_argument("--map", type=Path, default=Path("motion.png"))
    parser.add_argument("--devices", default="emulated:2,memory=64MiB")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clip = given.clip
        if clip is None:
            clip = Path(folder, "synthetic.mp4")
            clips.synthetic(clip)
        moved, boxes, stats = motion.annotate(clip, given.out, given.devices)
    image.imsave(given.map, moved, cmap="inferno")
    print(stats)
    print(f"{len(boxes)} frames; {sum(map(bool, boxes))} show something that moves")


if __name__ == "__main__":
    main()
