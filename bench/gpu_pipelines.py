# SPDX-License-Identifier: BSD-3-Clause
# bench/gpu_pipelines.py: rates of the applications of streams on GPUs, beside what bounds them.
"""Prints a line of JSON for each case.

spectra   2^26 channels of pinned voltages: complex64 home whole, complex64 reduced to 2^16 powers,
          and int8 pairs reduced alike, with where a chunk's time goes
prefetch  batches of 64 MiB on the GPUs, pinned and pageable, beside plain copies of PyTorch's and
          copies on a stream of their own
proteins  all queries with all records, in 10^12 cells a second; synthetic unless files are given

The first run of each case isn't counted: it compiles kernels and makes plans.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import quadriga

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
for folder in ("spectrometer", "proteins"):
    sys.path.insert(0, str(EXAMPLES / folder))

SIDE = 8192
CHANNELS = SIDE * SIDE
POWERS = 2**16
REDUCED = """
__global__ void take(quadriga::Tile<const float2> array, quadriga::Tile<float2> x) {
  const long long k = quadriga::thread_x();
  if (k < x.size()) x[k] = array[k];
}

__global__ void powers(quadriga::Tile<const float2> x, quadriga::Tile<float> sums) {
  const long long k = quadriga::thread_x();
  if (k >= sums.size()) return;
  float sum = 0;
  for (long long i = k; i < x.size(); i += sums.size()) sum += x[i].x * x[i].x + x[i].y * x[i].y;
  sums[k] = sum;
}
"""


def on_gpus_only(*_):
    raise NotImplementedError("this stage runs on GPUs")


def reduced(pipeline):
    pipeline.kernel(
        on_gpus_only,
        cuda=quadriga.CudaSource(REDUCED, "powers"),
        reads=["x"],
        writes={"powers": lambda chunk: (POWERS, "f4")},
        name="powers",
    )


def transformed(pipeline, field):
    import four_step

    twiddle = quadriga.CudaSource(four_step.KERNELS, "twiddle")
    pipeline.kernel(
        four_step.columns, cuda=four_step.columns_by_cufft, arrays="cupy", updates=[field]
    )
    pipeline.kernel(four_step.twiddle, cuda=twiddle, updates=[field])
    pipeline.kernel(four_step.rows, cuda=four_step.rows_by_cufft, arrays="cupy", updates=[field])


def back(pipeline):
    transformed(pipeline, "array")


def complex_reduced(pipeline):
    pipeline.kernel(
        on_gpus_only,
        cuda=quadriga.CudaSource(REDUCED, "take"),
        reads=["array"],
        temporaries={"x": lambda chunk: ((SIDE, SIDE), "c8")},
        name="take",
    )
    transformed(pipeline, "x")
    reduced(pipeline)


def pairs_reduced(pipeline):
    import four_step

    four_step.transform(pipeline, (SIDE, SIDE))
    reduced(pipeline)


def pinned(shape, dtype, count):
    import cupyx

    arrays = [cupyx.empty_pinned(shape, dtype) for _ in range(count)]
    for array in arrays:
        array[...] = 1
    return arrays


def spectra(given):
    cases = {
        "back": (back, (SIDE, SIDE), np.complex64),
        "reduced": (complex_reduced, (SIDE, SIDE), np.complex64),
        "int8": (pairs_reduced, (CHANNELS, 2), np.int8),
    }
    for name, (stages, shape, dtype) in cases.items():
        # No more chunks are in progress than there are buffers: kernels change their fields.
        buffers = pinned(shape, dtype, 10 * given.gpus)
        memory = 6 * np.prod(shape) * np.dtype(np.complex64).itemsize
        with quadriga.Engine(f"cuda:{given.gpus}") as engine:
            for count in (8 * given.gpus, given.chunks):
                pipeline = quadriga.Pipeline(
                    engine=engine, memory=f"{memory}B", look_ahead=given.gpus
                )
                pipeline.source({"array": buffers[i % len(buffers)]} for i in range(count))
                stages(pipeline)
                stats = pipeline.run()
        yield {
            "case": f"spectra {name}",
            "chunks": given.chunks,
            "spectra_a_second": given.chunks / stats.seconds,
            "percent_over_bound": 100 * (stats.seconds / stats.bound_seconds - 1),
            "limit": stats.limit,
            "most_on_device": stats.most_on_device,
            "by_device": list(stats.by_device),
            "milliseconds": milliseconds(stats),
        }


def milliseconds(stats):
    """Where a chunk's time goes: of each stage, and how much of the run the stage was busy.

    Copies and kernels that overlap have together more `busy` than a chunk takes; if what is busy
    adds up to the time of a chunk, nothing overlaps.
    """
    return {
        f"{stage.kind} {stage.name}": {
            "busy": round(1e3 * stage.busy_seconds / max(1, stage.chunks), 3),
            "waiting": round(1e3 * stage.waiting_seconds / max(1, stage.chunks), 3),
            "occupancy": round(stage.occupancy, 3),
        }
        for stage in stats.stages
    }


def prefetch(given):
    import torch

    size = 64 << 20

    def ours(batches):
        return quadriga.prefetch(batches, engine=engine, arrays="torch")

    def plain(batches):
        targets = [torch.empty(size // 4, device=f"cuda:{gpu}") for gpu in range(given.gpus)]
        for number, batch in enumerate(batches):
            yield targets[number % given.gpus].copy_(batch, non_blocking=True)

    def beside(batches):
        streams = [torch.cuda.Stream(device=gpu) for gpu in range(given.gpus)]
        for number, batch in enumerate(batches):
            gpu = number % given.gpus
            with torch.cuda.stream(streams[gpu]):
                there = batch.to(f"cuda:{gpu}", non_blocking=True)
            torch.cuda.current_stream(gpu).wait_stream(streams[gpu])
            yield there

    def rate(loader, batches):
        for gpu in range(given.gpus):
            torch.cuda.synchronize(gpu)
        begin = time.perf_counter()
        for _ in loader(batches[i % len(batches)] for i in range(given.chunks)):
            pass
        for gpu in range(given.gpus):
            torch.cuda.synchronize(gpu)
        return 1e-9 * given.chunks * size / (time.perf_counter() - begin)

    with quadriga.Engine(f"cuda:{given.gpus},memory=2GiB") as engine:
        for name in ("pinned", "pageable"):
            batches = [torch.ones(size // 4) for _ in range(8)]
            if name == "pinned":
                batches = [batch.pin_memory() for batch in batches]
            best = dict.fromkeys((ours, plain, beside), 0.0)
            for _ in range(4):  # in turn
                best = {each: max(found, rate(each, batches)) for each, found in best.items()}
            yield {
                "case": f"prefetch {name}",
                "gigabytes_a_second": best[ours],
                "plain_copies": best[plain],
                "side_stream": best[beside],
            }


def synthetic(folder, queries):
    """As many records as SWISS-PROT 34 has, and about as long: log-normal, 360 on average."""
    from database import LETTERS, write

    random = np.random.default_rng(1)

    def sequences(lengths):
        return [LETTERS[random.integers(0, 20, length)] for length in lengths]

    lengths = np.clip(random.lognormal(5.68, 0.65, 59_021), 20, 5000).astype(int)
    records = sequences(lengths)
    write(folder / "database.fasta", [f"r{i}" for i in range(len(records))], records)
    asked = sequences(random.integers(60, 600, queries))
    write(folder / "queries.fasta", [f"q{i}" for i in range(queries)], asked)
    return folder / "database.fasta", folder / "queries.fasta"


def proteins(given):
    import search

    from quadriga import formats

    with tempfile.TemporaryDirectory() as folder:
        database, queries = given.files or synthetic(Path(folder), given.queries)
        asked = search.queries_in(queries)
        for _ in range(2):
            hits = search.Hits(asked, most=3)
            pipeline = quadriga.Pipeline(devices=given.devices or f"cuda:{given.gpus}")
            pipeline.source(
                chunk
                for _ in range(given.times)
                for chunk in formats.fasta(database, records=given.records)
            )
            search.score(pipeline, asked)
            stats = pipeline.map(hits.add, mode="serial", name="hits").run()
    yield {
        "case": "proteins",
        "queries": len(asked.names),
        "records": given.records,
        "tera_cells_a_second": 1e-12 * hits.cells / stats.seconds,
        "percent_over_bound": 100 * (stats.seconds / stats.bound_seconds - 1),
        "limit": stats.limit,
        "by_device": list(stats.by_device),
        "milliseconds": milliseconds(stats),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=["spectra", "prefetch", "proteins"])
    parser.add_argument("files", nargs="*", metavar="FASTA", help="a database, and queries")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--records", type=int, default=512, help="a chunk")
    parser.add_argument("--queries", type=int, default=500, help="synthetic ones")
    parser.add_argument("--times", type=int, default=1, help="that the database is read")
    parser.add_argument("--devices", help="of proteins, instead of GPUs")
    given = parser.parse_args()
    if len(given.files) not in (0, 2):
        parser.error("expected a database and queries, or no files")
    for row in globals()[given.case](given):
        rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}
        print(json.dumps(rounded | {"gpus": given.gpus}), flush=True)


if __name__ == "__main__":
    main()
