# SPDX-License-Identifier: BSD-3-Clause
# examples/proteins/main.py: the sequences of a database that are most like some queries.
"""Without files, it makes a synthetic database in which relatives of the queries are hidden."""

import argparse
import tempfile
from pathlib import Path

import database
import search


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FASTA", help="a database, and queries")
    parser.add_argument("--devices", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = given.files or database.synthetic(Path(folder))
        hits, stats = search.best_hits(*files, given.devices)
    print(stats)
    print(f"{hits.cells / stats.seconds / 1e9:.3g} billion cells a second")
    for query, best in hits.best.items():
        print(query, *(f"{name}:{score}" for score, name in best))
    if not given.files:
        assert [best[0][1] for best in hits.best.values()] == [f"relative{i}" for i in range(3)]


if __name__ == "__main__":
    main()
