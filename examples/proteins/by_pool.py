# SPDX-License-Identifier: BSD-3-Clause
# examples/proteins/by_pool.py: the same search by a pool of threads, to compare the pipeline with.
"""Prints the median times of both, run by turns; without files over a synthetic database."""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import database
import numpy as np
import search

from quadriga import formats


def best_hits(records_file, queries, records, threads, most=3):
    """As `search.best_hits`, without a pipeline. Chunks are all read before the last is scored."""
    asked = search.queries_in(queries)
    hits = search.Hits(asked, most)

    def scored(chunk):
        scores = np.empty((len(chunk["starts"]) - 1, len(asked.names)), "i4")
        unused = [None] * 4
        asked.scores(
            chunk["residues"], chunk["starts"], *unused, scores, None,
            open=search.OPEN, extend=search.EXTEND,
        )  # fmt: skip
        return chunk | {"scores": scores}

    with ThreadPoolExecutor(threads) as pool:
        for chunk in pool.map(scored, formats.fasta(records_file, records)):
            hits.add(chunk)
    return hits


def compare():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FASTA", help="a database, and queries")
    parser.add_argument("--records", type=int, default=20000, help="of the synthetic database")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    ways = {
        "pool": lambda files: best_hits(*files, 256, given.threads),
        "pipeline": lambda files: search.best_hits(*files, f"cpu:{given.threads}", records=256),
    }
    seconds = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        files = given.files or database.synthetic(Path(folder), given.records)
        for _ in range(given.repeats):
            for name, search_by in ways.items():
                begin = time.perf_counter()
                search_by(files)
                seconds[name].append(time.perf_counter() - begin)
    pool, pipeline = (median(seconds[name]) for name in ("pool", "pipeline"))
    print(f"pool {pool:.3g} s, pipeline {pipeline:.3g} s: {pool / pipeline:.2f} of the pool's rate")


if __name__ == "__main__":
    compare()
