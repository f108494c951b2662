# SPDX-License-Identifier: BSD-3-Clause
# examples/piston/nastran.py: reads meshes of tetrahedra from NASTRAN bulk data, free field format.
"""Nodes, elements, material, supports and pressures of a `.nas` file."""

import lzma
import re
from dataclasses import dataclass

import numpy as np

_EXPONENT = re.compile(r"(?<=[\d.])([+-]\d+)$")  # "1.5-3" is 1.5e-3


@dataclass(frozen=True)
class Mesh:
    """Indices are from 0; lengths are in the file's unit."""

    points: np.ndarray  # (nodes, 3)
    elements: np.ndarray  # (elements, 4 or 10): nodes, corners first
    modulus: float  # Young's
    ratio: float  # Poisson's
    fixed: np.ndarray  # (supports, 2): node, direction 0 to 2
    faces: np.ndarray  # (faces, 3): corner nodes, under pressure
    insides: np.ndarray  # (faces,): the fourth corner of each face's element
    pressures: np.ndarray  # (faces,)


def read_mesh(path):
    """The mesh in a file. Raises ValueError naming the file and what it lacks."""
    cards = _cards(path)
    for needed in ("GRID", "CTETRA", "MAT1", "SPC", "PLOAD4"):
        if needed not in cards:
            raise ValueError(f"{path}: no card {needed}; expected a mesh with supports and loads")
    grid, tetra = cards["GRID"], cards["CTETRA"]
    numbers = np.array([int(card[1]) for card in grid])
    points = np.array([[_real(field) for field in card[3:6]] for card in grid])
    place = np.full(numbers.max() + 1, -1)
    place[numbers] = np.arange(len(numbers))
    element_numbers = np.array([int(card[1]) for card in tetra])
    elements = place[np.array([[int(field) for field in card[3:] if field] for card in tetra])]
    material = cards["MAT1"][0]
    loads = cards["PLOAD4"]
    where = np.full(element_numbers.max() + 1, -1)
    where[element_numbers] = np.arange(len(element_numbers))
    loaded = where[[int(card[2]) for card in loads]]
    insides = place[[int(card[8]) for card in loads]]
    corners = elements[loaded, :4]
    is_on_face = corners != insides[:, None]
    if (is_on_face.sum(axis=1) != 3).any():
        raise ValueError(f"{path}: a PLOAD4 names no corner of its element")
    return Mesh(
        points, elements, _real(material[2]), _real(material[4]), _supports(cards["SPC"], place),
        corners[is_on_face].reshape(-1, 3), insides, np.array([_real(card[3]) for card in loads]),
    )  # fmt: skip


def _supports(cards, place):
    """SPC lists one or two nodes, each with digits of directions: 1 to 3 are displacements."""
    pairs = []
    for card in cards:
        for at in range(2, len(card) - 1, 3):
            if card[at]:
                digits = card[at + 1]
                pairs += [(place[int(card[at])], int(d) - 1) for d in digits if d in "123"]
    return np.array(pairs)


def _cards(path):
    """Fields of each card, by its name; lines that begin with a comma continue the one before."""
    cards = {}
    last = None
    opened = lzma.open if str(path).endswith(".xz") else open
    with opened(path, "rt") as file:
        for line in file:
            if line.startswith("ENDDATA"):
                break
            fields = line.rstrip("\n").split(",")
            if len(fields) < 2 or line.startswith("$"):
                continue
            if fields[0].strip(" +"):
                last = [field.strip() for field in fields]
                cards.setdefault(last[0], []).append(last)
            elif last is not None:
                # A card has at most eight fields a line behind its name.
                last += [""] * (-(len(last) - 1) % 8) + [field.strip() for field in fields[1:]]
    return cards


def _real(text):
    return float(_EXPONENT.sub(r"e\1", text)) if text else 0.0
