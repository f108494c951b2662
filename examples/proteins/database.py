# SPDX-License-Identifier: BSD-3-Clause
# examples/proteins/database.py: a synthetic database of proteins, and queries with a relative each.
"""FASTA files of random sequences."""

import numpy as np

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
