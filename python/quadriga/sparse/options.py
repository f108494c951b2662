# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/options.py: words and numbers among the arguments of a solver.
"""Words become the numbers of the extension, or are refused."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgument, InvalidType

FORMATS = {"auto": 0, "csr": 1, "sell": 2, "blocks": 3}
EXCHANGES = {"auto": 0, "halo": 1, "whole": 2}
ROUTES = {"auto": 0, "direct": 1, "host": 2}
SPLITS = {"rows": 0, "columns": 1}
#: How iterations are arranged, by the words of the extension.
METHODS = {"cg": 0, "classic_cg": 1, "single_reduction_cg": 2, "pipelined_cg": 3}


def refuse_whole(**options: Any) -> None:
    """Refuses what needs all rows at once."""
    for name, value in options.items():
        if value is not None:
            raise InvalidArgument(
                f"{name} is {value!r} and needs the whole matrix, but A is RowBlocks or a folder; "
                "expected None"
            )


def number_of(name: str, value: Any, numbers: dict[str, int]) -> int:
    """Of a name among the options of one argument."""
    if value not in numbers:
        raise InvalidArgument(f"{name} is {value!r}; expected one of {list(numbers)}")
    return numbers[value]


def tolerance(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidType(f"{name} is {value!r}; expected a number of at least 0") from None
    if not number >= 0:
        raise InvalidArgument(f"{name} is {value!r}; expected a number of at least 0")
    return number
