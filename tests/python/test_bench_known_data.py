# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench_known_data.py: rows of what known data, and reading them, cost.
import pytest

from quadriga.bench import from_python, measure, program

needs_program = pytest.mark.skipif(
    not program.built(program.OURS), reason="quadriga-bench is not part of this build"
)


@needs_program
@pytest.mark.parametrize("case", ["cpp-register-again", "cpp-on-host"])
def test_rows_of_known_data_in_cpp(case):
    (row,) = measure.overhead([case], repeat=1)
    assert row["case"] == case and row["unit"] == "ns/call"
    assert 0 < row["value"] < 1e6
    assert row["target"] is not None


def test_both_ways_of_residency_are_measured_in_turn(monkeypatch):
    """So that both meet the same load of the machine; the best of each counts."""
    seconds = iter([4.0, 5.0, 2.0, 3.0])
    order = []

    def steps(reads):
        order.append(reads)
        return next(seconds)

    monkeypatch.setattr(from_python, "_steps", steps)
    (row,) = from_python.run("residency", repeat=2, cores=2)
    assert order == [False, True, False, True]
    assert row["value"] == 3.0 / 2.0 and row["seconds_without_access"] == 2.0
