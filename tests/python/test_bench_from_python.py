# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench_from_python.py: what `quadriga bench` measures of a program in Python.
import pytest

from quadriga.bench import from_python, measure


@pytest.mark.parametrize("case", from_python.STAGES)
def test_empty_stages_take_time(case, monkeypatch):
    monkeypatch.setattr(from_python, "_CHUNKS", 50)
    (row,) = measure.streams([case], repeat=1)
    assert row["case"] == case and row["stages"] == 4
    assert 0 < row["value"] < 1e6 and row["unit"] == "us a stage"
    assert row["target"] == "≤ 15"
