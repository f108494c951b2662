# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_proteins.py: the protein search example: scores as parasail's, hits, the kernel.
"""All sequences are random."""

import by_pool
import database
import numpy as np
import parasail
import pytest
import search
from gpus_of_tests import on_gpu
from kernels_on_host import compile_for_gpu, run_on_host

import quadriga
from quadriga import formats

DEVICES = ["cpu:2", "emulated:2,memory=64MiB"]
ALL = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz*-", np.uint8)
USUAL = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8)


def sequences_of(lengths, seed=1):
    """Random ones, of which each third has all letters that FASTA has."""
    random = np.random.default_rng(seed)
    letters = [USUAL, USUAL, ALL]
    return [
        bytes(random.choice(letters[number % 3], length)).decode()
        for number, length in enumerate(lengths)
    ]


def related(sequences, seed=2):
    """Each with a stretch cut out and one put in, so that alignments have gaps."""
    random = np.random.default_rng(seed)
    found = []
    for each in sequences:
        a, b = sorted(random.integers(0, len(each) + 1, 2))
        cut = each[:a] + each[min(a + 7, b) :]
        found.append(cut[:b] + "ARNDW" + cut[b:])
    return found


QUERIES = sequences_of([1, 15, 16, 17, 63, 130])
LONGEST = QUERIES[-1]
# Gaps of either kind that are worth their cost, from one strip of the kernel to the next but one.
GAPS = [LONGEST[:61] + "P" * length + LONGEST[61:] for length in (1, 4, 21, 36)]
GAPS += [LONGEST[:50] + LONGEST[50 + length :] for length in (1, 4, 21, 36)]
RECORDS = [*sequences_of([1, 2, 15, 16, 17, 31, 33, 90, 200, 257, 64], seed=3), *related(QUERIES)]
RECORDS += GAPS


def plain(queries, records):
    """By parasail's simplest function, pair by pair."""
    return [
        [parasail.sw(q, r, search.OPEN, search.EXTEND, parasail.blosum62).score for q in queries]
        for r in records
    ]


def queries_of(sequences):
    return search.Queries([f"q{i}" for i in range(len(sequences))], sequences)


def chunk_of(records):
    starts = np.cumsum([0, *map(len, records)])
    residues = np.frombuffer("".join(records).encode(), np.uint8)
    chunk = {
        "residues": residues,
        "starts": starts,
        "names": [f"r{i}" for i in range(len(records))],
    }
    return chunk | search.by_length(chunk)


def assert_scores(devices, queries, records, chunk_records):
    asked = queries_of(queries)
    groups = [records[at : at + chunk_records] for at in range(0, len(records), chunk_records)]
    pipeline = quadriga.Pipeline(devices=devices).source(map(chunk_of, groups))
    search.score(pipeline, asked)
    found = np.concatenate([chunk["scores"] for chunk in pipeline.results()])
    assert found.tolist() == plain(queries, records)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("chunk_records", [1, 5, 100])
def test_scores_are_those_of_plain_parasail(devices, chunk_records):
    assert_scores(devices, QUERIES, RECORDS, chunk_records)


def test_hits_are_the_best_of_all_chunks(tmp_path):
    path = tmp_path / "database.fasta"
    path.write_text("".join(f">r{i}\n{r}\n" for i, r in enumerate(RECORDS)))
    asked = queries_of(QUERIES)
    hits = search.Hits(asked, most=4)
    pipeline = quadriga.Pipeline(devices="cpu:2").source(formats.fasta(path, records=3))
    search.score(pipeline, asked)
    pipeline.map(hits.add, mode="serial").run()
    expected = np.array(plain(QUERIES, RECORDS))
    for number, best in enumerate(hits.best.values()):
        scores = [score for score, _ in best]
        assert scores == sorted(expected[:, number], reverse=True)[:4]
        assert [expected[int(name[1:]), number] for _, name in best] == scores
    assert hits.cells == sum(map(len, QUERIES)) * sum(map(len, RECORDS))


def test_a_pool_of_threads_finds_the_same(tmp_path):
    files = database.synthetic(tmp_path, records=60)
    hits, _ = search.best_hits(*files, "cpu:2", records=16)
    assert by_pool.best_hits(*files, records=16, threads=2).best == hits.best


def operands_of(queries, records, blocks):
    asked, chunk = queries_of(queries), chunk_of(records)
    shape = (len(records), len(queries))
    longest = max(map(len, records))
    return [
        *(chunk[name] for name in ("residues", "starts", "order")),
        *(asked.codes, asked.rows, asked.ends),
        np.full(shape, -1, np.int32),
        np.full((2 * longest, search.WARPS * blocks), -1, np.int32),
    ]


ACCESS = ["read"] * 6 + ["write"] * 2


def source_of(queries):
    """The source as the pipeline has it."""
    pipeline = quadriga.Pipeline(devices="cpu:1")
    search.score(pipeline, queries_of(queries))
    return pipeline._stages[-1].codelet.cuda


def run(folder, queries, records, blocks):
    """The kernel's scores, computed on the host."""
    operands = operands_of(queries, records, blocks)
    source = source_of(queries)
    source.grid = blocks
    run_on_host(source, folder, operands, ACCESS, open=search.OPEN, extend=search.EXTEND)
    return operands[6].tolist()


@pytest.mark.parametrize("blocks", [1, 7, 60])
def test_the_kernel_for_gpus_scores_alike(tmp_path, blocks):
    assert run(tmp_path, QUERIES, RECORDS, blocks) == plain(QUERIES, RECORDS)


def test_queries_of_several_passes_are_scored_alike(tmp_path):
    queries = sequences_of([512, 513, 1100], seed=5)
    long = queries[-1]
    # Gaps of either kind over the end of a pass.
    records = [long[:500] + long[530:], long[:505] + "ARNDWKW" + long[505:], *related(queries)]
    records += sequences_of([3, 40], seed=6)
    assert run(tmp_path, queries, records, blocks=2) == plain(queries, records)


#: A letter of these scores 11: in all 32,637, 32,648 and more, where the kernel's limit is 32,640.
LARGE = ["W" * 2967, "W" * 2968, "W" * 3100]


def test_scores_beyond_16_bits_are_computed_again_in_whole_words(tmp_path, monkeypatch):
    """Beyond fewer bits here: the kernel is told that a packed score of 200 may have wrapped."""
    limit = "most_packed = 32767 - 127"
    assert limit in search.TEXT
    monkeypatch.setattr(search, "TEXT", search.TEXT.replace(limit, "most_packed = 200"))
    queries = ["W" * 18, "W" * 19, *sequences_of([600], seed=7)]
    records = ["W" * 18, "W" * 40, "ARND", *queries[2:]]
    assert run(tmp_path, queries, records, blocks=2) == plain(queries, records)


def test_the_host_scores_beyond_16_bits():
    assert_scores("cpu:2", [LARGE[0], LARGE[2]], [LARGE[0], LARGE[2], "ARND"], chunk_records=2)


def test_the_kernel_for_gpus_compiles():
    assert compile_for_gpu(source_of(QUERIES), operands_of(QUERIES, RECORDS, 4), ACCESS).code


@on_gpu
@pytest.mark.parametrize("chunk_records", [5, 100])
def test_a_gpu_scores_alike(chunk_records):
    assert_scores("cuda:1,memory=256MiB", QUERIES, RECORDS, chunk_records)
    assert_scores("cuda:1,memory=256MiB", LARGE[:2], [*LARGE, "ARND"], chunk_records)
