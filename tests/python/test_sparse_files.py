# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_files.py: Matrix Market files of all kinds, and broken ones.
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import quadriga
from quadriga.sparse.matrices import as_csr

SIZE = 12


def dense(found):
    csr = sp.csr_array((found.values, found.columns, found.offsets), shape=found.shape)
    return csr.toarray()


@pytest.mark.parametrize("field", ["real", "complex", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_all_fields_and_symmetries(tmp_path, field, symmetry, form):
    if field == "pattern" and (form == "array" or symmetry in ("skew-symmetric", "hermitian")):
        return  # there are none
    if symmetry == "hermitian" and field != "complex":
        return
    random = np.random.default_rng(1)
    a = random.integers(1, 9, (SIZE, SIZE)) * (random.random((SIZE, SIZE)) < 0.4)
    a = a.astype({"complex": complex, "integer": np.int64}.get(field, float))
    if field == "complex":
        a += 1j * (a != 0)
    if field == "pattern":
        a = (a != 0).astype(float)
    if symmetry != "general":
        a = np.tril(a, -1)
        sign = {"symmetric": a.T, "skew-symmetric": -a.T, "hermitian": a.conj().T}[symmetry]
        a = a + sign
    path = tmp_path / "a.mtx"
    given = sp.coo_array(a) if form == "coordinate" else a
    scipy.io.mmwrite(path, given, field=field, symmetry=symmetry)
    assert path.read_text().split("\n")[0].split()[2:] == [form, field, symmetry]
    np.testing.assert_array_equal(dense(as_csr(path)), a)


def test_broken_files_end_in_errors_of_ours(tmp_path):
    path = tmp_path / "a.mtx"
    a = sp.random_array((SIZE, SIZE), density=0.3, rng=np.random.default_rng(2))
    scipy.io.mmwrite(path, a)
    whole = path.read_bytes()
    random = np.random.default_rng(3)
    ended = {"read": 0, "refused": 0}
    for _ in range(400):
        text = bytearray(whole)
        for _ in range(random.integers(1, 5)):
            at = int(random.integers(len(text)))
            change = random.integers(4)
            if change == 0:
                del text[at:]
                text += b" "
            elif change == 1:
                text[at] = int(random.integers(256))
            elif change == 2:
                text[at:at] = bytes(random.choice(list(b"0123456789-.e \n"), 6).tolist())
            else:
                del text[at : at + int(random.integers(1, 9))]
        path.write_bytes(text)
        try:
            found = as_csr(path)
        except quadriga.Error as error:
            assert str(error)
            ended["refused"] += 1
        else:
            assert found.offsets[-1] == found.values.size
            ended["read"] += 1
    assert min(ended.values()) > 20


@pytest.mark.parametrize(("text", "said"), [
    ("matrix coordinate real general\n5 5 900000000000\n1 1 1.0\n", "promises 2700000000000 num"),
    ("matrix array real general\n4000000 4000000\n1.0\n", "promises 16000000000000 numbers"),
    ("matrix coordinate real general\n4000000000 4000000000 1\n1 1 1.0\n", "some rows are empty"),
    ("matrix coordinate real general\n-1 5 1\n1 1 1.0\n", "sizes '-1 5 1'"),
    ("matrix coordinate real general\n2 2 2\n1 1 1.0\n2 3 1.0\n", r"element 2 is at \(2, 3\)"),
    ("matrix coordinate real general\n2 2 2\n1 1 1.0\n0 2 1.0\n", r"element 2 is at \(0, 2\)"),
    ("matrix coordinate real general\n2 2 2\n1 1 1.0\n1.5 2 1.0\n", r"2 is at \(1\.5, 2\)"),
    ("matrix coordinate real general\n2 2 2\n1 1 1.0\n2 2", "promises 6 numbers; it has 5"),
    ("matrix coordinate real general\n2 2 2\n1 1 1.0\n2 2 x\n", "'x' is not a number"),
    ("matrix coordinate real general\n2 2 1\n1 1 1.0\n2 2 1.0\n", "3 numbers; it has 6"),
    ("matrix coordinate real symmetric\n2 3 1\n1 1 1.0\n", "a symmetric matrix of 2 x 3"),
    ("matrix coordinate quaternion general\n", "field 'quaternion'"),
    ("matrix coordinate real lopsided\n", "symmetry 'lopsided'"),
    ("matrix coordinate real general\n% only a remark", "header doesn't end"),
    ("vector", "first line"),
])  # fmt: skip
def test_what_headers_and_elements_say_is_checked(tmp_path, text, said):
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket {text}")
    with pytest.raises(quadriga.InvalidArgument, match=rf"a\.mtx.*{said}"):
        as_csr(path)


def test_remarks_blank_lines_and_spaces_are_passed_over(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket MATRIX coordinate Real general\n% a\n\n%b\n 2 2  3 \n\n"
                    "1 1 1e0\n  2 2\t-2.5\n\n2 1 .5")  # fmt: skip
    np.testing.assert_array_equal(dense(as_csr(path)), [[1, 0], [0.5, -2.5]])
