# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_damaged_headers.py: whatever a .npy file's header is, errors name the file.
import struct

import numpy as np
import pytest

from quadriga.cli import files
from quadriga.errors import IoError


def headed(version, text):
    form = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(form, len(text)) + text


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    "text", [b"{" * 50, b"(" * 9000, b"{'descr': '''", b"\\", b"\0", b"", b" x\n y", b"-" * 9000]
)
def test_headers_of_no_dictionary(tmp_path, version, text):
    path = tmp_path / "brace.npy"
    path.write_bytes(headed(version, text))
    with pytest.raises(IoError, match=r"brace\.npy: not a \.npy file: ."):
        files.read(path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_damaged_headers(tmp_path, version):
    """Bytes changed, cut or added; the file is read, or an error names it."""
    random = np.random.default_rng(version)
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4, 5), }".ljust(117) + b"\n"
    path = tmp_path / "damaged.npy"
    refused = 0
    for _ in range(300):
        damaged = bytearray(text)
        for _ in range(random.integers(1, 4)):
            place = random.integers(len(damaged) // 2)
            kind = random.integers(3)
            if kind == 0:
                damaged[place] = random.choice(list(b"{}()[]'\"\\,:#<f8-\0\n\xff9L"))
            elif kind == 1:
                del damaged[place : place + random.integers(1, 30)]
            else:
                damaged[place:place] = bytes(random.choice(list(b"{(['\"\\\n 1"), 3))
        path.write_bytes(headed(version, bytes(damaged)) + bytes(160))
        try:
            files.read(path)
        except IoError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 100
