# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench_ends.py: when the engine knows that kernels have ended is measured.
import pytest

from quadriga.bench import program


@pytest.mark.skipif(
    not program.built(program.OURS), reason="quadriga-bench is not part of this build"
)
def test_when_ends_are_seen_is_measured_under_load_and_alone():
    words = ["--count", "2", "--tasks", "2000", "--alone", "20"]
    rows = {row["case"]: row for row in program.run(program.OURS, "ends", *words)}
    assert set(rows) == {"ends-load", "ends-alone", "ends-waiter"}
    for row in rows.values():
        assert row["unit"] == "us"
        assert 0 < row["value"] <= row["p99"]
    assert rows["ends-load"]["us_a_task"] > 0
    # Waking one thread bounds what the driver knows, waking two what who waits knows.
    assert 0 < rows["ends-alone"]["bound"] < rows["ends-waiter"]["bound"]
