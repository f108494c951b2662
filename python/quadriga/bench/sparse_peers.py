# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/sparse_peers.py: products of SciPy, MKL and cuSPARSE, as far as they are
# installed.
"""What sparse products are compared with, and the rate at which a GPU reads."""

from __future__ import annotations

import ctypes
import ctypes.util
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..engine import Engine

#: Seconds of one of so many products.
Peer = Callable[[int], float]

_READ = r"""
extern "C" __global__ void read(const double2* from, long long count, double* out) {
  double sum = 0;
  const long long stride = (long long)gridDim.x * blockDim.x;
  #pragma unroll 4
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const double2 pair = __ldcs(from + i);
    sum += pair.x + pair.y;
  }
  if (sum == 0.5) *out = sum;
}
"""
_READ_BYTES = 1 << 32


def products(a: Any, b: Any, engine: Engine) -> dict[str, Peer]:
    """By the names of those that are here; cuSPARSE where the engine has GPUs."""
    found: dict[str, Peer] = {"SciPy, one thread": _on_host(lambda: a @ b)}
    if any(device.kind == "cuda" for device in engine.machine.devices):
        cusparse = _cusparse(a, b)
        return {"cuSPARSE's CSR on one GPU, by CuPy": cusparse} if cusparse else found
    mkl = _mkl(a, b)
    if mkl:
        found["MKL"] = _on_host(mkl)
    return found


def gpu_read_rate() -> float:
    """Bytes a second at which one GPU reads 4 GiB, the best of five passes; 0 without CuPy."""
    cupy = _found("cupy")
    if cupy is None:
        return 0.0
    array = cupy.ones(_READ_BYTES // 8)
    out = cupy.zeros(1)
    kernel = cupy.RawKernel(_READ, "read")
    blocks = 16 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    arguments = (array, np.int64(array.size // 2), out)

    def read() -> None:
        kernel((blocks,), (256,), arguments)

    read()
    return _READ_BYTES / min(_on_gpu(read, 3) for _ in range(5))


def _found(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def _on_host(work: Callable[[], object]) -> Peer:
    def seconds(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            work()
        return (time.perf_counter() - begin) / count

    return seconds


def _on_gpu(work: Callable[[], object], count: int) -> float:
    cupy = import_module("cupy")
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(count):
        work()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / count


def _cusparse(a: Any, b: Any) -> Peer | None:
    cupy, sparse = _found("cupy"), _found("cupyx.scipy.sparse")
    if cupy is None or sparse is None:
        return None
    matrix, right = sparse.csr_matrix(a), cupy.asarray(b)
    matrix @ right
    return lambda count: _on_gpu(lambda: matrix @ right, count)


class _Description(ctypes.Structure):
    """struct matrix_descr: general, no triangle, no unit diagonal."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


def _mkl(a: Any, b: Any) -> Callable[[], object] | None:
    """A product by MKL's inspector, on all of its threads; None where it isn't installed."""
    library = _mkl_library()
    if library is None or a.dtype != np.float64 or max(a.nnz, *a.shape) >= 2**31:
        return None
    indices, offsets, values = a.indices.astype(np.int32), a.indptr.astype(np.int32), a.data
    handle = ctypes.c_void_p()
    rows, cols = (ctypes.c_int(n) for n in a.shape)
    status = library.mkl_sparse_d_create_csr(
        ctypes.byref(handle), 0, rows, cols, *(ctypes.c_void_p(array.ctypes.data) for array in
        (offsets, offsets[1:], indices, values)),
    )  # fmt: skip
    general = _Description(20, 40, 50)
    transposed_not = 10
    if status == 0:
        library.mkl_sparse_set_mv_hint(handle, transposed_not, general, 1000)
        status = library.mkl_sparse_optimize(handle)
    out = np.empty_like(b)
    one, zero = ctypes.c_double(1), ctypes.c_double(0)

    def multiply() -> object:
        assert offsets.size and values.size  # They must live as long as the handle.
        return library.mkl_sparse_d_mv(
            transposed_not, one, handle, general, ctypes.c_void_p(b.ctypes.data), zero,
            ctypes.c_void_p(out.ctypes.data),
        )  # fmt: skip

    is_right = status == 0 and multiply() == 0 and np.allclose(out, a @ b)
    return multiply if is_right else None


def _mkl_library() -> ctypes.CDLL | None:
    """From PyPI's `mkl` or the system."""
    from importlib import metadata

    names = [ctypes.util.find_library("mkl_rt")]
    try:
        files = metadata.files("mkl") or []
        names += [
            str(Path(str(f.locate())).resolve()) for f in files if f.name.startswith("libmkl_rt")
        ]
    except metadata.PackageNotFoundError:
        pass
    for name in names:
        try:
            if name:
                return ctypes.CDLL(name)
        except OSError:
            continue
    return None
