# SPDX-License-Identifier: BSD-3-Clause
# tests/python/kernels_on_host.py: runs CUDA sources without a GPU, thread after thread.
"""A kernel's text compiled as C++ for the host; its threads must not wait for each other.

It shows that indices, types and arithmetic are right; not launches, races or speed.
"""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from quadriga import nvrtc
from quadriga.cuda_source import _CPP_TYPES, matrix_of
from quadriga.errors import Unavailable
from quadriga.layout import layout_of

SHIM = """
#include <algorithm>
#include <cmath>
#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
using std::max;
using std::min;
struct float2 { float x, y; };
struct Place { unsigned x, y, z; };
static Place blockIdx, blockDim, threadIdx;
static float2 make_float2(float x, float y) { return {x, y}; }
static void sincospif(float a, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(M_PI * a));
  *cosine = static_cast<float>(std::cos(M_PI * a));
}
template <class F, class... T>
static unsigned by_halves(F f, T... words) {
  const auto half = [&](int shift) {
    return static_cast<unsigned>(f(static_cast<short>(words >> shift)...) & 0xffff) << shift;
  };
  return half(0) | half(16);
}
static short wrapped(int x) { return static_cast<short>(x); }
static unsigned __vadd2(unsigned a, unsigned b) {
  return by_halves([](int x, int y) { return x + y; }, a, b);
}
static unsigned __vmaxs2(unsigned a, unsigned b) {
  return by_halves([](int x, int y) { return max(x, y); }, a, b);
}
static unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) {
  return by_halves([](int x, int y, int z) { return max<int>(wrapped(x + y), z); }, a, b, c);
}
static unsigned __viaddmax_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return __vmaxs2(__viaddmax_s16x2(a, b, c), 0);
}
"""
ENTRY = """
extern "C" void launch(const long long* t, const unsigned* grid, const unsigned* block) {{
  blockDim = {{block[0], block[1], block[2]}};
  const auto place = [](unsigned k, const unsigned* n) {{
    return Place{{k % n[0], k / n[0] % n[1], k / n[0] / n[1]}};
  }};
  for (unsigned b = grid[0] * grid[1] * grid[2]; b-- > 0;)
    for (unsigned k = 0; k < block[0] * block[1] * block[2]; ++k) {{
      blockIdx = place(b, grid);
      threadIdx = place(k, block);
      {kernel}({operands});
    }}
}}
"""


def run_on_host(source, folder, operands, access, **values):
    """Launches a `CudaSource` on NumPy arrays, as the engine would on a device."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    given, numbers = [], []
    for at, (array, kind) in enumerate(zip(operands, kinds_of(operands, access), strict=True)):
        fields = ", ".join(f"t[{5 * at + i}]" for i in range(1, 5))
        given.append(f"{kind}{{reinterpret_cast<decltype({kind}::data)>(t[{5 * at}]), {fields}}}")
        rows, cols, row_step, col_step, *_ = matrix_of(layout_of(array))
        numbers += [array.ctypes.data, rows, cols, row_step, col_step]
    given += [f"{_CPP_TYPES[kind]}({values[name]})" for name, kind in source.parameters.items()]
    text = folder / f"{source.kernel}.cpp"
    entry = ENTRY.format(kernel=source.kernel, operands=", ".join(given))
    text.write_text(SHIM + nvrtc.PRELUDE + source.text + entry)
    made = text.with_suffix(".so")
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-w"]
    subprocess.run([compiler, *options, text, "-o", made], check=True, timeout=100)
    layouts = [layout_of(array) for array in operands]
    matrices = [matrix_of(each) for each in layouts]
    grid, block = source._spread(source.kernel, layouts, matrices, access)
    ctypes.CDLL(str(made)).launch(
        np.array(numbers, np.int64).ctypes.data_as(ctypes.c_void_p),
        np.array(grid, np.uint32).ctypes.data_as(ctypes.c_void_p),
        np.array(block, np.uint32).ctypes.data_as(ctypes.c_void_p),
    )


def compile_for_gpu(source, operands, access):
    """Compiles a `CudaSource` by NVRTC, as the engine would for an H100; skips without NVRTC."""
    try:
        nvrtc._Compiler()
    except Unavailable as error:
        pytest.skip(str(error))
    kinds = [*kinds_of(operands, access), *(_CPP_TYPES[k] for k in source.parameters.values())]
    request = nvrtc.Request(source.kernel, source.text, source.kernel, tuple(kinds), source.options)
    return nvrtc.image_of(request, 90)


def kinds_of(operands, access):
    """The tiles that a kernel takes, in C++."""
    return [
        f"quadriga::Tile<{'const ' if mode == 'read' else ''}{_CPP_TYPES[array.dtype]}>"
        for array, mode in zip(operands, access, strict=True)
    ]
