# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/completion.py: what completion shows of an object.
"""Members that other modules of the package use, and that dir() doesn't list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Kind = TypeVar("_Kind", bound=type)


def hides(*names: str) -> Callable[[_Kind], _Kind]:
    """A decorator of classes: dir() of their objects lacks these names."""

    def listed(self: object) -> list[str]:
        return [each for each in object.__dir__(self) if each not in names]

    def decorate(kind: _Kind) -> _Kind:
        kind.__dir__ = listed  # type: ignore[assignment]
        return kind

    return decorate
