# SPDX-License-Identifier: BSD-3-Clause
# examples/spectrometer/four_step.py: a long FFT as kernels of a pipeline, by the four-step method.
"""One FFT of rows * cols samples as many short ones, which any FFT library does well.

The samples fill a matrix row by row. FFTs of its columns, a twiddle factor for each element, and
FFTs of its rows give the spectrum; bin k stands in row k % rows and column k // rows.

Source: D. H. Bailey, FFTs in External or Hierarchical Memory, J. Supercomputing 4, 1990.
"""

import numpy as np
from scipy import fft

import quadriga

KERNELS = """
__global__ void unpack(quadriga::Tile<const signed char> pairs, quadriga::Tile<float2> x) {
  const long long k = quadriga::thread_x();
  if (k >= x.size()) return;
  x[k] = make_float2(pairs(k, 0), pairs(k, 1));
}

__global__ void twiddle(quadriga::Tile<float2> x) {
  const long long k = quadriga::thread_x();
  if (k >= x.size()) return;
  const long long row = k / x.cols;
  const long long col = k % x.cols;
  float sine, cosine;
  sincospif(-2.0 * (row * col) / x.size(), &sine, &cosine);
  const float2 a = x(row, col);
  x(row, col) = make_float2(a.x * cosine - a.y * sine, a.x * sine + a.y * cosine);
}

// From the lowest frequency to the highest: bin k of an FFT of even length is the one of
// frequency k - size, if it is in the upper half.
__global__ void power(quadriga::Tile<const float2> x, quadriga::Tile<float> spectrum) {
  const long long k = quadriga::thread_x();
  const long long size = x.size();
  if (k >= size) return;
  const long long bin = (k + size / 2) % size;
  const float2 a = x(bin % x.rows, bin / x.rows);
  spectrum[k] = a.x * a.x + a.y * a.y;
}

__global__ void in_order(quadriga::Tile<const float2> x, quadriga::Tile<float2> y) {
  const long long k = quadriga::thread_x();
  if (k < x.size()) y[k] = x(k % x.rows, k / x.rows);
}
"""


def unpack(pairs, x):
    parts = pairs.reshape(*x.shape, 2)
    x.real = parts[:, :, 0]
    x.imag = parts[:, :, 1]


def columns(x):
    x[...] = fft.fft(x, axis=0, workers=1, overwrite_x=True)


def columns_by_cufft(x):
    import cupy

    x[...] = cupy.fft.fft(x, axis=0)


def rows(x):
    x[...] = fft.fft(x, axis=1, workers=1, overwrite_x=True)


def rows_by_cufft(x):
    import cupy

    x[...] = cupy.fft.fft(x, axis=1)


def twiddle(x):
    """Times exp(-2 pi i row col / size), with col = wide * coarse + fine."""
    wide = 1 << (x.shape[1].bit_length() // 2)
    row = np.arange(x.shape[0])[:, np.newaxis]
    turns = -2j * np.pi / x.size
    parts = x.reshape(x.shape[0], -1, wide)
    parts *= np.exp(turns * row * wide * np.arange(parts.shape[1])).astype("c8")[:, :, np.newaxis]
    parts *= np.exp(turns * row * np.arange(wide)).astype("c8")[:, np.newaxis, :]


def power(x, spectrum):
    powers = (x.real**2 + x.imag**2).T
    half = len(powers) // 2
    shifted = spectrum.reshape(powers.shape)
    shifted[:half], shifted[half:] = powers[half:], powers[:half]


def in_order(x, y):
    y.reshape(x.T.shape)[...] = x.T


def spectra(pipeline, shape):
    """From the field "array", int8 pairs, to the field "spectrum", power by frequency.

    Both parts of the shape are powers of two. What lies between stays on the device.
    """
    transform(pipeline, shape)
    pipeline.kernel(
        power,
        cuda=quadriga.CudaSource(KERNELS, "power"),
        reads=["x"],
        writes={"spectrum": lambda chunk: (shape[0] * shape[1], "f4")},
    )


def transform(pipeline, shape):
    """From the field "array" to the temporary "x", the transform with its bins by columns."""
    pipeline.kernel(
        unpack,
        cuda=quadriga.CudaSource(KERNELS, "unpack"),
        reads=["array"],
        temporaries={"x": lambda chunk: (shape, "c8")},
    )
    pipeline.kernel(columns, cuda=columns_by_cufft, arrays="cupy", updates=["x"])
    pipeline.kernel(twiddle, cuda=quadriga.CudaSource(KERNELS, "twiddle"), updates=["x"])
    pipeline.kernel(rows, cuda=rows_by_cufft, arrays="cupy", updates=["x"])


def ordered(pipeline, shape):
    """A transform's temporary "x" as the field "bins", as `scipy.fft.fft` orders them."""
    pipeline.kernel(
        in_order,
        cuda=quadriga.CudaSource(KERNELS, "in_order"),
        reads=["x"],
        writes={"bins": lambda chunk: (shape[0] * shape[1], "c8")},
    )


def two_dimensional(pipeline):
    """The FFT of a matrix, in place in the field "array": columns, then rows."""
    pipeline.kernel(columns, cuda=columns_by_cufft, arrays="cupy", updates=["array"])
    pipeline.kernel(rows, cuda=rows_by_cufft, arrays="cupy", updates=["array"])
