# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench_driver.py: what the driver costs a task, with threads that queue.
import pytest

from quadriga.bench import program


@pytest.mark.skipif(
    not program.built(program.OURS), reason="quadriga-bench is not part of this build"
)
@pytest.mark.parametrize("case", ["chain", "chains", "independent"])
def test_the_drivers_cost_is_measured_on_several_devices(case):
    words = ["--case", case, "--count", "2", "--repeat", "1"]
    (row,) = program.run(program.OURS, "driver", *words)
    assert row["case"] == f"driver-{case}" and row["value"] > 0
