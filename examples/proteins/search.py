# SPDX-License-Identifier: BSD-3-Clause
# examples/proteins/search.py: Smith-Waterman scores of a protein database, chunk by chunk.
"""Local alignments with affine gaps by BLOSUM62; hosts use parasail, GPUs a kernel of this folder.

A gap of k letters costs OPEN + (k - 1) * EXTEND.
"""

from pathlib import Path

import numpy as np
import parasail

import quadriga
from quadriga import formats

OPEN, EXTEND = 11, 1
BLOCK, WARPS = 128, 4  # threads and warps of a block
MOST_BLOCKS = 512  # where each needs memory for the edges between passes
PASS = 512  # rows of a query that a warp has at once, in whole words
PARTS = ("cells.cuh", "sweep.cuh", "smith_waterman.cuh")
TEXT = "".join(Path(__file__).with_name(part).read_text() for part in PARTS)


class Queries:
    """What sequences are compared with, as parasail and as the kernel want it."""

    def __init__(self, names, sequences):
        self.names = list(names)
        self.profiles = [parasail.profile_create_sat(each, parasail.blosum62) for each in sequences]
        # A letter's column of the matrix; parasail takes letters that it doesn't know as "*".
        self.codes = np.array(parasail.blosum62.mapper, np.uint8)
        self.lengths = np.array([len(each) for each in sequences])
        # Scores of 32 letters with those of the queries, each of which begins at a multiple of 16;
        # between them, and where a sequence has ended, the least.
        ends = np.cumsum([0, *(-(-self.lengths // 16) * 16)])
        self.rows = np.full((32, max(int(ends[-1]), 16)), -128, np.int8)
        for begin, each in zip(ends, sequences, strict=False):
            found = self.codes[np.frombuffer(each.encode(), np.uint8)]
            self.rows[:24, begin : begin + len(each)] = parasail.blosum62.matrix[found].T
        self.ends = np.array([ends[:-1], ends[:-1] + self.lengths], np.int32)

    @property
    def constants(self):
        return {
            "codes": self.codes,
            "rows": self.rows,
            "query_ends": self.ends,
            "open": OPEN,
            "extend": EXTEND,
        }

    def scores(self, residues, starts, *others, open, extend):
        """On the host; others are what only the kernel needs, and the scores to write."""
        table = others[4]
        for record, (begin, end) in enumerate(zip(starts, starts[1:], strict=False)):
            sequence = residues[begin:end].tobytes().decode()
            for number, profile in enumerate(self.profiles):
                found = parasail.sw_striped_profile_sat(profile, sequence, open, extend)
                table[record, number] = found.score

    def longest(self):
        return int(self.lengths.max())


class Hits:
    """The best records for each query."""

    def __init__(self, queries, most):
        self.most = most
        self.best = {name: [] for name in queries.names}
        self._lists = list(self.best.values())
        self.cells = 0
        self._letters = int(queries.lengths.sum())
        self._least = np.full(len(queries.names), -1)  # what a score must exceed to be kept

    def add(self, chunk):
        self.cells += len(chunk["residues"]) * self._letters
        scores = chunk["scores"]
        changed = np.flatnonzero(scores.max(axis=0) > self._least)
        lists = [self._lists[number] for number in changed]
        left = scores.T[changed]
        rows = np.arange(len(changed))
        for _ in range(min(self.most, len(scores))):
            records = left.argmax(axis=1)
            found = left[rows, records]
            left[rows, records] = -1
            for best, score, record in zip(lists, found.tolist(), records.tolist(), strict=True):
                best.append((score, chunk["names"][record]))
        for number, best in zip(changed, lists, strict=True):
            best.sort(key=lambda hit: -hit[0])
            del best[self.most :]
            if len(best) == self.most:
                self._least[number] = best[-1][0]


def by_length(chunk):
    """The longest first, so that threads side by side take equally long."""
    return {"order": np.argsort(-np.diff(chunk["starts"]), kind="stable").astype("i4")}


def score(pipeline, queries):
    """From a chunk of `quadriga.formats.fasta` to its field "scores", records by queries."""

    def blocks(records):
        # Each has several pairs of records and one query at a time.
        wanted = -(-records // (2 * WARPS)) * len(queries.names)
        return wanted if queries.longest() <= PASS else min(wanted, MOST_BLOCKS)

    def edges(chunk):
        if queries.longest() <= PASS:
            return (1, 1), "i4"
        longest = int(np.diff(chunk["starts"]).max(initial=1))
        return (2 * longest, WARPS * blocks(len(chunk["starts"]) - 1)), "i4"

    pipeline.map(by_length)
    pipeline.kernel(
        queries.scores,
        cuda=quadriga.CudaSource(
            TEXT,
            "smith_waterman",
            parameters={"open": "i4", "extend": "i4"},
            grid=lambda *shapes: blocks(shapes[-2][0]),
            block=BLOCK,
        ),
        reads=["residues", "starts", "order"],
        constants=queries.constants,
        writes={"scores": lambda c: ((len(c["starts"]) - 1, len(queries.names)), "i4")},
        temporaries={"scratch": edges},
        name="align",
    )


def queries_in(path):
    [given] = formats.fasta(path, records=10**6)
    sequences = np.split(given["residues"], given["starts"][1:-1])
    return Queries(given["names"], [bytes(each).decode() for each in sequences])


def best_hits(database, queries, devices, records=64, most=3):
    """The hits, and the run's figures."""
    asked = queries_in(queries)
    hits = Hits(asked, most)
    pipeline = quadriga.Pipeline(devices=devices).source(formats.fasta(database, records))
    score(pipeline, asked)
    return hits, pipeline.map(hits.add, mode="serial", name="hits").run()
