# SPDX-License-Identifier: BSD-3-Clause
# bench/manual/by_cupy.py: a stream of chunks over GPUs by CuPy alone, beside a pipeline.
"""Prints a line of JSON: seconds of both, taken in turn, and what they gain. Needs a GPU.

By hand: two streams per GPU, each with a buffer; chunks take turns on them. The kernel adds one to
each number `--rounds` times.
"""

import argparse
import json
import time

import numpy as np

SOURCE = """
__global__ void add(float* x, long long count, int rounds) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= count) return;
  float value = x[i];
  for (int k = 0; k < rounds; ++k) value += 1.0f;
  x[i] = value;
}
"""
TILE = """
__global__ void add(quadriga::Tile<float> x, int rounds) {
  const long long i = quadriga::thread_x();
  if (i >= x.size()) return;
  float value = x[i];
  for (int k = 0; k < rounds; ++k) value += 1.0f;
  x[i] = value;
}
"""


def by_hand(chunks, gpus, rounds):
    import cupy

    largest = max(chunk.size for chunk in chunks)
    slots = []
    for turn in range(2 * gpus):
        with cupy.cuda.Device(turn % gpus):
            slots.append((cupy.cuda.Stream(non_blocking=True), cupy.empty(largest, "f4")))
    kernels = {}
    for gpu in range(gpus):
        with cupy.cuda.Device(gpu):
            kernels[gpu] = cupy.RawKernel('extern "C" ' + SOURCE.strip(), "add")
    begin = time.perf_counter()
    for number, chunk in enumerate(chunks):
        gpu = number % gpus
        stream, buffer = slots[number % len(slots)]
        with cupy.cuda.Device(gpu), stream:
            there = buffer[: chunk.size]
            there.set(chunk, stream=stream)
            blocks = -(-chunk.size // 256)
            kernels[gpu]((blocks,), (256,), (there, np.int64(chunk.size), np.int32(rounds)))
            there.get(stream=stream, out=chunk, blocking=False)
    for stream, _ in slots:
        stream.synchronize()
    return time.perf_counter() - begin


def by_pipeline(chunks, gpus, rounds):
    import quadriga

    def add(x, rounds):
        raise NotImplementedError("this kernel runs on GPUs")

    pipeline = quadriga.Pipeline(devices=f"cuda:{gpus}").source({"x": chunk} for chunk in chunks)
    cuda = quadriga.CudaSource(TILE, "add", parameters={"rounds": "i4"})
    pipeline.kernel(add, cuda=cuda, updates=["x"], constants={"rounds": rounds})
    return pipeline.run().seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--chunks", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    import cupyx

    sizes = np.random.default_rng(1).integers(4_000_000, 40_000_000, given.chunks)
    chunks = [cupyx.zeros_pinned(int(size), "f4") for size in sizes]
    ways = {"by_hand": by_hand, "pipeline": by_pipeline}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(given.repeat + 1):  # the first compiles the kernels
        for name, way in ways.items():
            best[name] = min(best[name], way(chunks, given.gpus, given.rounds))
    expected = 2.0 * (given.repeat + 1) * given.rounds
    right = all(chunk[::4093].max() == chunk[::4093].min() == expected for chunk in chunks)
    gain = best["by_hand"] / best["pipeline"]
    print(json.dumps(best | {"gain": gain, "gpus": given.gpus, "right": right}))


if __name__ == "__main__":
    main()
