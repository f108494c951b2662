# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_formats.py: voltages, filterbanks and FASTA: read, written, refused.
"""Files are made here; what another program wrote says which."""

import gzip
import struct
import sys

import numpy as np
import pytest

from quadriga.errors import InvalidArgument, IoError
from quadriga.formats import (
    FilterbankHeader,
    FilterbankWriter,
    fasta,
    filterbank,
    read_filterbank_header,
    voltages,
)

# The header that blimpy 2.1.4 (blimpy.io.sigproc.generate_sigproc_header) writes for these values.
BY_BLIMPY = bytes.fromhex(
    "0c0000004845414445525f53544152540c00000074656c6573636f70655f6964060000000a0000006d616368696e65"
    "5f69641400000009000000646174615f74797065010000000b000000736f757263655f6e616d6508000000566f7961"
    "6765723104000000666368310048f47fb172c04004000000666f6666000000000070c7be060000006e6368616e7304"
    "000000050000007473616d70fe43a9a6ec4032400600000074737461727436e6eb065926ec40040000006e69667301"
    "000000050000006e62697473200000000a0000004845414445525f454e44"
)
VOYAGER = FilterbankHeader(
    nchans=4,
    fch1=8421.386717353016,
    foff=-2.7939677238464355e-06,
    tsamp=18.253611008,
    tstart=57650.78209490741,
    source_name="Voyager1",
    others={"telescope_id": 6, "machine_id": 20, "data_type": 1},
)


def word(text):
    return struct.pack("<i", len(text)) + text.encode()


def integer(name, value):
    return word(name) + struct.pack("<i", value)


def real(name, value):
    return word(name) + struct.pack("<d", value)


def header_of(*, without=(), more=b"", **values):
    given = {"nchans": 4, "nbits": 32, "tsamp": 1.0, "fch1": 1400.0, "foff": -0.5, **values}
    words = [
        (integer if isinstance(value, int) else real)(name, value)
        for name, value in given.items()
        if name not in without
    ]
    return b"".join([word("HEADER_START"), *words, more, word("HEADER_END")])


def test_a_header_that_blimpy_wrote_is_read(tmp_path):
    path = tmp_path / "voyager.fil"
    spectra = np.arange(12, dtype="<f4").reshape(3, 1, 4)
    path.write_bytes(BY_BLIMPY + spectra.tobytes())
    assert read_filterbank_header(path) == (VOYAGER, len(BY_BLIMPY))
    found = list(filterbank(path, spectra=2))
    assert [chunk.shape for chunk in found] == [(2, 1, 4), (1, 1, 4)]
    assert np.concatenate(found).tolist() == spectra.tolist()


def test_what_is_written_is_what_blimpy_writes_in_another_order(tmp_path):
    path = tmp_path / "written.fil"
    with FilterbankWriter(path, VOYAGER) as file:
        file.add(np.arange(8, dtype=np.float32).reshape(2, 1, 4))
        file.add(np.arange(4, dtype=np.float32))
        assert file.spectra == 3
        assert not path.exists()
    content = path.read_bytes()
    assert len(content) == len(BY_BLIMPY) + 12 * 4
    assert content[len(BY_BLIMPY) :] == np.float32([*range(8), *range(4)]).tobytes()
    assert read_filterbank_header(path) == (VOYAGER, len(BY_BLIMPY))


def test_blimpy_reads_what_is_written_and_is_read(tmp_path):
    blimpy = pytest.importorskip("blimpy")
    values = np.random.default_rng(1).random((5, 1, 4), np.float32)
    others = {"src_raj": 123456.0, "src_dej": 65432.0, **VOYAGER.others}
    header = FilterbankHeader(4, 1400.0, -0.5, 2.0, 60000.0, source_name="test", others=others)
    with FilterbankWriter(tmp_path / "ours.fil", header) as file:
        file.add(values)
    waterfall = blimpy.Waterfall(str(tmp_path / "ours.fil"))
    assert waterfall.data.tolist() == values.tolist()
    for name in ("nchans", "fch1", "foff", "tsamp", "tstart", "nbits", "nifs", "source_name"):
        assert waterfall.header[name] == getattr(header, name)
    waterfall.write_to_fil(str(tmp_path / "theirs.fil"))
    again, _ = read_filterbank_header(tmp_path / "theirs.fil")
    assert (again.fch1, again.foff, again.tsamp) == (1400.0, -0.5, 2.0)
    [found] = filterbank(tmp_path / "theirs.fil", spectra=10)
    assert found.tolist() == values.tolist()


@pytest.mark.parametrize(("nbits", "kind"), [(8, np.uint8), (16, np.uint16), (32, np.float32)])
def test_values_of_each_width_come_back(tmp_path, nbits, kind):
    header = FilterbankHeader(6, 1400.0, 0.25, 0.1, nbits=nbits, nifs=2)
    values = np.random.default_rng(1).integers(0, 256, (7, 2, 6)).astype(kind)
    with FilterbankWriter(tmp_path / "x.fil", header) as file:
        file.add(values)
    [found] = filterbank(tmp_path / "x.fil", spectra=7)
    assert found.dtype == kind
    assert (found == values).all()
    assert header.frequencies().tolist() == [1400.0, 1400.25, 1400.5, 1400.75, 1401.0, 1401.25]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "doesn't begin with HEADER_START"),
        (b"\x93NUMPY" + bytes(100), "doesn't begin with HEADER_START"),
        (word("HEADER_START") + integer("nchans", 4), "ends within its header, at byte 30"),
        (header_of()[:50], "ends within its header"),
        (header_of(more=integer("colour", 3)), "unknown keyword 'colour' at byte"),
        (header_of(more=integer("nchans", 3)), "keyword 'nchans' again"),
        (header_of(more=struct.pack("<i", 2**30)), "is 1073741824 letters long; expected at most"),
        (header_of(more=word("FREQUENCY_START")), "table of frequencies"),
        (header_of(without=["tsamp", "foff"]), "lacks tsamp, foff"),
        (header_of(nbits=4), "header is wrong: nbits is 4; expected 8, 16 or 32"),
        (header_of(nchans=0), "nchans is 0; expected at least 1"),
        (header_of(nchans=-2), "nchans is -2"),
        (header_of(tsamp=0.0), "tsamp is 0.0; expected seconds above 0"),
        (header_of(foff=float("nan")), "foff is nan"),
        (header_of(more=word("signed") + b"\x01"), "its values are signed"),
        (header_of() + bytes(39), "truncated: 39 bytes of data are 2 records of 16 bytes and 7"),
    ],
    ids=lambda value: value if isinstance(value, str) else "header",
)
def test_bad_filterbanks_are_refused_before_the_first_chunk(tmp_path, content, message):
    path = tmp_path / "bad.fil"
    path.write_bytes(content)
    with pytest.raises(IoError, match=message) as raised:
        filterbank(path, spectra=1)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((2, 5), np.float32), r"shape \(2, 5\): expected times of nifs=2 by nchans=4"),
        (np.ones((3, 4), np.float32), r"shape \(3, 4\)"),
        (np.float32(1), r"shape \(\)"),
        (np.ones((2, 4), complex), "spectra of complex128; the file holds float32"),
    ],
)
def test_spectra_that_do_not_fit_are_refused_and_leave_no_file(tmp_path, values, message):
    header = FilterbankHeader(4, 1400.0, 1.0, 1.0, nifs=2)
    path = tmp_path / "x.fil"
    with pytest.raises(InvalidArgument, match=message), FilterbankWriter(path, header) as file:
        file.add(np.asarray(values))
    assert list(tmp_path.iterdir()) == []


def test_headers_hold_what_the_format_does():
    with pytest.raises(InvalidArgument, match="others has 'nchans'"):
        FilterbankHeader(4, 1400.0, 1.0, 1.0, others={"nchans": 3})
    with pytest.raises(InvalidArgument, match="source_name is"):
        FilterbankHeader(4, 1400.0, 1.0, 1.0, source_name="\u2609").pack()
    with pytest.raises(InvalidArgument, match="machine_id is 2.5, which the format can't hold"):
        FilterbankHeader(4, 1400.0, 1.0, 1.0, others={"machine_id": 2.5}).pack()


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for read in (filterbank, voltages, fasta):
        with pytest.raises(IoError, match=r"gone: can't be read: .*No such file"):
            read(tmp_path / "gone", 10)


def test_voltages_come_in_chunks(tmp_path):
    pairs = np.random.default_rng(1).integers(-128, 128, (12, 2), np.int8)
    path = tmp_path / "night.raw"
    path.write_bytes(b"12345" + pairs.tobytes())
    chunks = list(voltages(path, samples=4, offset=5))
    assert [chunk.dtype for chunk in chunks] == [np.int8] * 3
    assert np.concatenate(chunks).tolist() == pairs.tolist()
    with pytest.raises(InvalidArgument, match="12 samples, which are 2 chunks of 5 and 2 more"):
        voltages(path, samples=5, offset=5)
    kept = list(voltages(path, samples=5, offset=5, drop_last=True))
    assert np.concatenate(kept).tolist() == pairs[:10].tolist()
    with pytest.raises(InvalidArgument, match="12 samples, fewer than the 13 of a chunk"):
        voltages(path, samples=13, offset=5, drop_last=True)
    with pytest.raises(IoError, match="truncated: 25 bytes of data are 12 records of 2 bytes"):
        voltages(path, samples=4, offset=4)
    with pytest.raises(IoError, match="has 29 bytes; its data begin at byte 30"):
        voltages(path, samples=4, offset=30)


def test_a_file_that_shrinks_is_noticed(tmp_path):
    path = tmp_path / "night.raw"
    path.write_bytes(bytes(80_000))
    chunks = voltages(path, samples=20_000)
    next(chunks)
    path.write_bytes(bytes(70_000))
    with pytest.raises(IoError, match="became shorter"):
        next(chunks)


@pytest.mark.parametrize("block", range(1, 12))
def test_records_lie_across_blocks_of_the_file(tmp_path, monkeypatch, block):
    monkeypatch.setattr(sys.modules["quadriga.formats.fasta"], "_BLOCK", block)
    path = tmp_path / "some.fasta.gz"
    path.write_bytes(gzip.compress(b">a b>c\nMK\n\nT*\n>\r\nG-\r\n>last\nAC"))
    chunks = list(fasta(path, records=2))
    assert [bytes(chunk["residues"]) for chunk in chunks] == [b"MKT*G-", b"AC"]
    assert [chunk["starts"].tolist() for chunk in chunks] == [[0, 4, 6], [0, 2]]
    assert [chunk["names"] for chunk in chunks] == [["a", ""], ["last"]]


@pytest.mark.parametrize("what", ["shorter", "damaged"])
def test_a_compressed_file_that_cannot_be_read_to_its_end(tmp_path, what):
    path = tmp_path / "some.fasta.gz"
    letters = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), 4_000_000)
    packed = bytearray(gzip.compress(b">a\n" + bytes(letters) + b"\n", 1))
    middle = len(packed) // 2
    if what == "shorter":
        del packed[middle:]
    else:
        packed[middle : middle + 1000] = bytes(range(250)) * 4
    path.write_bytes(packed)
    with pytest.raises(IoError, match="some.fasta.gz: can't be read"):
        list(fasta(path, records=1))
    path.write_bytes(packed[:2])
    with pytest.raises(IoError) as found:
        fasta(path, records=1)
    assert str(found.value).count("can't be read") == 1


@pytest.mark.parametrize("name", ["some.fasta", "some.fasta.gz"])
def test_sequences_come_in_chunks(tmp_path, name):
    path = tmp_path / name
    text = b">sp|P1 first\nMKT\nAYI\r\n\n>sp|P2\nGG*\n>sp|P3 third of them\nAC DE"
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    chunks = list(fasta(path, records=2))
    assert [chunk["names"] for chunk in chunks] == [["sp|P1", "sp|P2"], ["sp|P3"]]
    assert [bytes(chunk["residues"]) for chunk in chunks] == [b"MKTAYIGG*", b"ACDE"]
    assert [chunk["starts"].tolist() for chunk in chunks] == [[0, 6, 9], [0, 4]]
    assert all(chunk["residues"].flags.writeable for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is no FASTA file"),
        (b"MKT\n>late\n", "is no FASTA file"),
        (b">one\nMK\n>two\n>three\nA\n", "record 'two' is empty"),
        (b">one\nMK\n>two\nMKT\nA1C\n", "record 'two' has '1' at position 5; expected letters"),
        (b">a\nMK>T\n", "record 'a' has '>' at position 3"),
        (b">a\nMKT\n>b\n>c\nG1\n", "record 'b' is empty"),
        (b">a\nM1\n>b\n>c\nG\n", "record 'a' has '1' at position 2"),
        (b">a\nM\x0bK\n", r"record 'a' has '\\x0b' at position 2"),
        (b">a\nMKT\n>b\nG\n A1\n", "record 'b' has '1' at position 3"),
    ],
)
def test_bad_sequences_are_named(tmp_path, text, message):
    path = tmp_path / "bad.fasta"
    path.write_bytes(text)
    with pytest.raises(IoError, match=message):
        list(fasta(path, records=10))
