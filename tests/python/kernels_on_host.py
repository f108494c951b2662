# SPDX-License-Identifier: BSD-3-Clause
# tests/python/kernels_on_host.py: runs CUDA sources without a GPU, thread after thread.
"""A kernel's text compiled as C++ for the host, where each thread of a block is a context.

The threads of a warp run in turn between one shuffle and the next, warps between one barrier of the
block and the next. It shows that indices, types and arithmetic are right; not launches, races or
speed.
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
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads)
#define __forceinline__ inline
#define __restrict__
using std::max;
using std::min;
struct float2 { float x, y; };
struct Place { unsigned x, y, z; };
static Place blockIdx, blockDim, threadIdx, gridDim;
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
static unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c) {
  return __vmaxs2(__vmaxs2(a, b), c);
}

// A block whose threads run in turn.
class Block {
 public:
  Block(unsigned threads, std::function<void()> kernel)
      : kernel_(std::move(kernel)), threads_(threads), stacks_(threads * stack_bytes) {}
  void run(const std::function<Place(unsigned)>& place) {
    current = this;
    for (unsigned k = 0; k < threads_.size(); ++k) {
      Thread& thread = threads_[k];
      thread.state = State::running;
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = stacks_.data() + k * stack_bytes;
      thread.context.uc_stack.ss_size = stack_bytes;
      thread.context.uc_link = nullptr;
      makecontext(&thread.context, &Block::begin, 0);
    }
    while (!is_over()) {
      for (std::size_t first = 0; first < threads_.size(); first += 32)
        while (step(first, place)) {
        }
      vote_ = next_vote_;
      next_vote_ = 0;
      for (Thread& thread : threads_)
        if (thread.state == State::waiting) thread.state = State::running;
    }
  }
  // Until all others of the warp have come as far.
  void pause() { swapcontext(&threads_[now_].context, &host_); }
  int wait(int vote) {
    next_vote_ |= vote;
    threads_[now_].state = State::waiting;
    pause();
    return vote_;
  }
  // What lane `from` gives, of those that shuffle at once.
  template <class T>
  T shuffle(T value, unsigned from) {
    Thread& own = threads_[now_];
    std::memcpy(&own.given[own.turn % 2], &value, sizeof(T));
    const unsigned turn = own.turn++ % 2;
    const std::size_t lane = now_ - now_ % 32 + from;
    pause();
    T got;
    std::memcpy(&got, &threads_[lane].given[turn], sizeof(T));
    return got;
  }
  unsigned lane() const { return now_ % 32; }
  static Block* current;

 private:
  static constexpr std::size_t stack_bytes = 64 << 10;
  enum class State { running, waiting, over };
  struct Thread {
    ucontext_t context;
    State state = State::running;
    unsigned turn = 0;
    long long given[2];
  };
  static void begin() {
    current->kernel_();
    current->threads_[current->now_].state = State::over;
    current->pause();
  }
  bool is_over() const {
    return std::all_of(threads_.begin(), threads_.end(),
                       [](const Thread& each) { return each.state == State::over; });
  }
  // Each running thread of a warp goes on to its next pause; whether any is still running.
  bool step(std::size_t first, const std::function<Place(unsigned)>& place) {
    bool any = false;
    for (now_ = first; now_ < std::min(first + 32, threads_.size()); ++now_) {
      if (threads_[now_].state != State::running) continue;
      threadIdx = place(now_);
      swapcontext(&host_, &threads_[now_].context);
      any = any || threads_[now_].state == State::running;
    }
    return any;
  }

  std::function<void()> kernel_;
  std::vector<Thread> threads_;
  std::vector<char> stacks_;
  ucontext_t host_;
  std::size_t now_ = 0;
  int vote_ = 0, next_vote_ = 0;
};
Block* Block::current = nullptr;

static void __syncthreads() { Block::current->wait(0); }
static int __syncthreads_or(int vote) { return Block::current->wait(vote != 0); }
template <class T>
static T __shfl_sync(unsigned, T value, int from, int width) {
  const unsigned lane = Block::current->lane();
  return Block::current->shuffle(value, lane - lane % width + from % width);
}
template <class T>
static T __shfl_up_sync(unsigned, T value, int by, int width) {
  const unsigned lane = Block::current->lane();
  return Block::current->shuffle(value, lane % width < unsigned(by) ? lane : lane - by);
}
template <class T>
static T __shfl_xor_sync(unsigned, T value, int mask) {
  return Block::current->shuffle(value, Block::current->lane() ^ mask);
}
"""
ENTRY = """
extern "C" void launch(const long long* t, const unsigned* grid, const unsigned* block) {{
  blockDim = {{block[0], block[1], block[2]}};
  gridDim = {{grid[0], grid[1], grid[2]}};
  const auto place = [](unsigned k, const unsigned* n) {{
    return Place{{k % n[0], k / n[0] % n[1], k / n[0] / n[1]}};
  }};
  Block threads(block[0] * block[1] * block[2], [&] {{ {kernel}({operands}); }});
  for (unsigned b = grid[0] * grid[1] * grid[2]; b-- > 0;) {{
    blockIdx = place(b, grid);
    threads.run([&](unsigned k) {{ return place(k, block); }});
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
    subprocess.run([compiler, *options, text, "-o", made], check=True, timeout=300)
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
