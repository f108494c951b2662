# SPDX-License-Identifier: BSD-3-Clause
# examples/proteins/main.py: the sequences of a database that are most like some queries.
"""Without files, it makes a synthetic database in which relatives of the queries are hidden."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import search

import quadriga
from quadriga import formats

LETTERS = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8)


def synthetic(folder, records=400, seed=1):
    """Random proteins; query i has one relative, of which a fifth is other letters."""
    random = np.random.default_rng(seed)
    queries = [LETTERS[random.integers(0, 20, length)] for length in (63, 200, 511)]
    made = [LETTERS[random.integers(0, 20, random.integers(50, 400))] for _ in range(records)]
    names = [f"random{number}" for number in range(records)]
    for number, query in enumerate(queries):
        other = LETTERS[random.integers(0, 20, query.size)]
        at = int(random.integers(0, records))
        made[at] = np.where(random.random(query.size) < 0.2, other, query)
        names[at] = f"relative{number}"
    write(folder / "database.fasta", names, made)
    write(folder / "queries.fasta", [f"query{i}" for i in range(len(queries))], queries)
    return folder / "database.fasta", folder / "queries.fasta"


def write(path, names, sequences):
    pairs = zip(names, sequences, strict=True)
    path.write_bytes(b"".join(b">%s\n%s\n" % (name.encode(), each) for name, each in pairs))


def best_hits(database, queries, devices, records=64, most=3):
    """The hits, and the run's figures."""
    [given] = formats.fasta(queries, records=10**6)
    sequences = np.split(given["residues"], given["starts"][1:-1])
    asked = search.Queries(given["names"], [bytes(each).decode() for each in sequences])
    hits = search.Hits(asked, most)
    pipeline = quadriga.Pipeline(devices=devices).source(formats.fasta(database, records))
    search.score(pipeline, asked)
    return hits, pipeline.map(hits.add, mode="serial", name="hits").run()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FASTA", help="a database, and queries")
    parser.add_argument("--devices", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database, queries = given.files or synthetic(Path(folder))
        hits, stats = best_hits(database, queries, given.devices)
    print(stats)
    print(f"{hits.cells / stats.seconds / 1e9:.3g} billion cells a second")
    for query, best in hits.best.items():
        print(query, *(f"{name}:{score}" for score, name in best))
    if not given.files:
        assert [best[0][1] for best in hits.best.values()] == [f"relative{i}" for i in range(3)]


if __name__ == "__main__":
    main()
