# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_message_examples.py: examples of messages, on several numbers of processes.
"""Each checks its own result, and fails if it is wrong; here it is started as its reader would."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def drawn(name, ranks, folder):
    """What an example prints."""
    command = [sys.executable, "-m", "quadriga", "launch", "-n", str(ranks), EXAMPLES / name]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_block_cyclic(ranks, tmp_path):
    for picture in drawn("block_cyclic.py", ranks, tmp_path).split("transposed:"):
        assert set("".join(picture.split())) == {str(rank) for rank in range(ranks)}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_summa(ranks, tmp_path):
    *lines, rate = drawn("summa.py", ranks, tmp_path).splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(ranks))
    assert all("#" in line for line in lines)
    assert rate.endswith("GFLOP/s")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_gradients(ranks, tmp_path):
    pytest.importorskip("scipy")
    lines = drawn("gradients.py", ranks, tmp_path).splitlines()
    norms = [float(line.split()[1]) for line in lines]
    assert norms[0] == 1 and norms[-1] < 1e-8
    assert all(line.endswith("*") for line in lines)


def test_particles_make_one_picture_on_any_number_of_processes(tmp_path):
    pictures = [drawn("particles.py", ranks, tmp_path).splitlines() for ranks in (1, 2, 3, 4)]
    for ranks, (*picture, counts) in enumerate(pictures, 1):
        assert picture == pictures[0][:-1]
        assert len(counts.split(": ")[1].split()) == ranks


def test_wave_is_the_same_to_the_bit_on_any_number_of_processes(tmp_path):
    drawn("wave.py", 1, tmp_path)  # which starts four, and compares
    alone = (tmp_path / "wave-1.npy").read_bytes()
    for ranks in (2, 3, 6):
        drawn("wave.py", ranks, tmp_path)
        assert (tmp_path / f"wave-{ranks}.npy").read_bytes() == alone
