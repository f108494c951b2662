# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/chunk.py: one piece of a stream: named arrays and other values.
"""Chunks, which a source yields, stages process, and results are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidType
from ..typing import ChunkLike


class Chunk(Mapping[str, Any]):
    """A piece of a stream: a mapping from names to arrays and other values, which stay on the host.

    A chunk yielded as an array has the field ``"array"``; a tuple has ``"0"``, ``"1"`` and so on; a
    dict has its keys. A missing field raises a KeyError that names the existing ones.

    Attributes
    ----------
    number : int
        Its position in the source, from 0.
    parts : tuple of int
        Chunks that a `flat_map` makes of a chunk keep its number, and have their position among
        each other here; parts of parts have several positions.
    """

    __slots__ = (
        "__weakref__", "_fields", "kept", "made", "number", "outputs", "parts", "places", "records",
        "sizes",
    )  # fmt: skip

    def __init__(self, number: int, given: ChunkLike, parts: tuple[int, ...] = ()) -> None:
        self.number = number
        self.parts = parts
        self._fields = _fields_of(given)
        self.records: list[Any] = []  # of its kernels, kept until it ends
        self.places: dict[str, Any] = {}  # of its arrays, as kernels refer to them
        self.sizes: dict[str, Any] = {}  # layouts of temporaries, by name
        self.outputs: dict[str, Any] = {}  # made for what kernels will write
        self.made: dict[int, Any] = {}  # results of kernels that return fields, by stage
        self.kept: dict[str, Any] = {}  # what these were, until it is where others look for it

    def __getitem__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            known = ", ".join(map(repr, self._fields)) or "none"
            raise KeyError(f"chunk {self.label} has no field {name!r}; it has {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def label(self) -> str:
        """Its number, as ``"17"``, or ``"17.3"`` of a part."""
        return label_of(self.number, self.parts)

    def kind_of(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of a field that kernels use, temporaries included."""
        layout = self.sizes.get(name)
        array = self[name] if layout is None else layout
        if layout is None and not isinstance(array, np.ndarray):
            raise InvalidType(
                f"field {name!r} of chunk {self.label} is {type(array).__name__}; kernels take "
                "arrays"
            )
        return array.shape, array.dtype

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Its fields that are NumPy arrays, which kernels can use."""
        return {
            name: value
            for name, value in self._fields.items()
            if isinstance(value, np.ndarray) and not value.dtype.hasobject
        }

    def update(self, given: Mapping[str, Any]) -> None:
        """Add or replace fields."""
        self._fields.update(given)
        for name, array in given.items():
            self.places.pop(name, None)
            if self.outputs.get(name) is not array:
                self.outputs.pop(name, None)

    def drop(self, arrays: Mapping[str, Any]) -> None:
        """Remove these fields where they are these arrays."""
        for name, array in arrays.items():
            if self._fields.get(name) is array:
                del self._fields[name]

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}: {value.dtype} {'x'.join(map(str, value.shape))}"
            if isinstance(value, np.ndarray)
            else f"{name}: {type(value).__name__}"
            for name, value in self._fields.items()
        )
        return f"<Chunk {self.label}: {fields}>"


def label_of(number: int, parts: tuple[int, ...]) -> str:
    """As ``"17"``, or ``"17.3"`` of a part."""
    return ".".join(map(str, (number, *parts)))


Kind = tuple[Any, Any]  # shape and type
Shape = Callable[[Chunk], Kind]
Seconds = Callable[[Chunk], float]


class Through:
    """Yielded by a source for a chunk that passes through some of the stages only.

    Parameters
    ----------
    chunk : array, tuple or dict
    stages : sequence of str
        Their names; the pipeline determines their order.
    """

    __slots__ = ("chunk", "stages")

    def __init__(self, chunk: ChunkLike, stages: Sequence[str]) -> None:
        if isinstance(stages, str) or not all(isinstance(each, str) for each in stages):
            raise InvalidType(f"stages is {stages!r}; expected a list of names")
        self.chunk = chunk
        self.stages = list(stages)


def require_names(fields: Mapping[Any, Any]) -> None:
    for name in fields:
        if not isinstance(name, str):
            raise InvalidType(f"a chunk's fields are named by str, got {name!r}")


def _fields_of(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        require_names(given)
        return dict(given)
    if isinstance(given, tuple):
        return {str(i): value for i, value in enumerate(given)}
    if isinstance(given, np.ndarray):
        return {"array": given}
    raise InvalidType(f"a source yields arrays, tuples or dicts, got {type(given).__name__}")
