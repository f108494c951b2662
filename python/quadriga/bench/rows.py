# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/rows.py: what a result is compared with, and what it should reach.
"""Published references, and targets; docs/benchmarks.md explains them."""

from __future__ import annotations

from typing import Any, NamedTuple

KEYS = (
    "benchmark",
    "case",
    "value",
    "unit",
    "reference",
    "reference_value",
    "ratio",
    "bound",
    "machine",
    "commit",
)
# Units of which more is better; of the others less is.
_MORE = {"GFLOP/s", "bytes/s", "kernels / total", "of first-come's rate", "times one port's rate"}

DEVICES = (1, 2, 4, 8)
DECIDING = (1, 4, 8)


class Target(NamedTuple):
    """A limit of `value`, `ratio`, `growth`, `worst` or `part` (of the bound; times: multiple)."""

    what: str
    limit: float

    def reached(self, row: dict[str, Any]) -> bool | None:
        found = row.get(self.what)
        if self.what == "part" and row["bound"]:
            found = row["value"] / row["bound"]
        if found is None:
            return None
        more = self.what == "ratio" or row["unit"] in _MORE
        return bool(found >= self.limit if more else found <= self.limit)

    def text(self, row: dict[str, Any]) -> str:
        sign = "≥" if self.what == "ratio" or row["unit"] in _MORE else "≤"
        of = {
            "value": "",
            "ratio": " × ref",
            "part": " × bound",
            "worst": " at worst",
            "growth": " × with 8 times the tasks",
        }[self.what]
        return f"{sign} {self.limit:g}{of}"


def _by_devices(kind: str, what: str, limits: tuple[float, ...]) -> dict[str, list[Target]]:
    return {f"{kind}-{n}": [Target(what, x)] for n, x in zip(DEVICES, limits, strict=True)}


TARGETS: dict[str, dict[str, list[Target]]] = {
    "overhead": {
        "gemm3": [Target("value", 300), Target("ratio", 6)],
        "independent": [Target("value", 200)],
        "chains": [Target("value", 200)],
        "malloc": [Target("value", 0)],
        "memory": [Target("value", 200)],
        "python-chains": [Target("value", 3000)],
        "cpp-register-again": [Target("value", 200)],
        "cpp-on-host": [Target("value", 500)],
        "register-again": [Target("value", 1000)],
        "on-host": [Target("value", 3000)],
        "residency": [Target("value", 1.05)],
        # Processor time a task, and what 8 times the tasks may add to it.
        **{
            f"decide-{n}": [Target("value", x), Target("growth", 1.15)]
            for n, x in zip(DECIDING, (2000, 3000, 4000), strict=True)
        },
    },
    "gemm": {
        "host": [Target("ratio", 0.95)],
        "out-of-core": [Target("value", 0.97)],
        "out-of-core-bytes": [Target("value", 10)],
        **_by_devices("bytes", "value", (8.0, 10.27, 13, 18)),
        **_by_devices("makespan", "part", (1.02, 1.02, 1.05, 1.25)),
    },
    "potrf": {
        "host": [Target("ratio", 1.0)],
        **_by_devices("bytes", "value", (2.23, 3.4, 4.5, 6.2)),
        **_by_devices("makespan", "part", (1.02, 1.1, 1.2, 1.6)),
        "idgraf-600MB": [Target("value", 7.0)],
        "idgraf-600MB-rate": [Target("part", 0.99)],
    },
    "copies": {},
    "spmv": {
        **{f"csr-{points}": [Target("ratio", 1)] for points in (7, 27)},
        **{f"cg-{points}": [Target("ratio", 1.5)] for points in (7, 27)},
    },
    # Host arrays, beside an MPI.
    "messages": {
        **{f"pingpong-{size}": [Target("ratio", 0.5)] for size in ("8B", "512B", "4KiB")},
        "bandwidth-64MiB": [Target("ratio", 1)],
        "devices-contiguous-64MiB": [Target("ratio", 0.97)],
        **{
            f"simulated-{kind}-{size}": [Target("part", x)]
            for kind in ("broadcast", "reduce")
            for size, x in (("1GiB", 1.05), ("32MiB", 1.25))
        },
        "simulated-allreduce-1GiB": [Target("part", 1.1)],
        **{
            f"simulated-{kind}-orders": [Target("value", 1.02)]
            for kind in ("broadcast", "reduce", "allreduce")
        },
        "simulated-broadcast-ports": [Target("value", 4)],
        **{
            f"simulated-{kind}-k40x4-{nodes}": [Target("part", 1.15)]
            for kind in ("broadcast", "reduce")
            for nodes in (2, 4, 8)
        },
    },
    "streams": {
        **{
            f"fixed-{n}": [Target("value", x)]
            for n, x in zip(range(1, 5), (1, 1, 4, 1), strict=True)
        },
        **{f"random-{n}": [Target("value", 4), Target("worst", 6)] for n in range(1, 5)},
        **{f"ahead-8-{n}": [Target("value", 10)] for n in range(1, 5)},
        **{f"announced-{n}": [Target("value", 4), Target("worst", 6)] for n in range(1, 5)},
        "rate-4": [Target("value", 1.05)],
        "cost-parallel": [Target("value", 500)],
        "cost-serial_in_order": [Target("value", 500)],
        "python-parallel": [Target("value", 15)],
        "python-serial_in_order": [Target("value", 15)],
        "stages": [Target("ratio", 1.0)],
    },
}

# Published figures: gigabytes (2^30) moved by the better of the two systems in the XKaapi paper's
# tables, and StarPU's schedulers as simulated for the same machine.
_PAPER = "better of XKaapi and StarPU (Lima et al. 2012)"
_DARTS = "StarPU darts on SimGrid"
_PUBLISHED: dict[tuple[str, str], tuple[str, float]] = {
    **{
        ("gemm", f"bytes-{n}"): (_PAPER, x)
        for n, x in zip(DEVICES, (8.00, 10.27, 16.49, 24.35), strict=True)
    },
    **{
        ("potrf", f"bytes-{n}"): (_PAPER, x)
        for n, x in zip(DEVICES, (2.23, 3.81, 6.55, 9.00), strict=True)
    },
    ("potrf", "idgraf-600MB"): (_DARTS, 9.2),
    ("potrf", "idgraf-600MB-rate"): (_DARTS, 494.0),
}


def finish(
    benchmark: str, raw: dict[str, Any], machine: dict[str, Any], commit: str | None
) -> dict[str, Any]:
    """A measured line with all keys in order, followed by its additional keys."""
    row: dict[str, Any] = dict.fromkeys(KEYS)
    reference = _PUBLISHED.get((benchmark, raw["case"]))
    if reference:
        row["reference"], row["reference_value"] = reference
    row.update(raw, benchmark=benchmark, machine=machine, commit=commit)
    if row["reference_value"] and row["value"]:
        ratio = row["value"] / row["reference_value"]
        row["ratio"] = ratio if row["unit"] in _MORE else 1 / ratio
    targets = TARGETS[benchmark].get(row["case"], [])
    if targets:
        row["target"] = ", ".join(target.text(row) for target in targets)
        reached = [target.reached(row) for target in targets]
        row["reached"] = False if False in reached else None if None in reached else True
    return row
