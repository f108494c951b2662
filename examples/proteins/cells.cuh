// SPDX-License-Identifier: BSD-3-Clause
// examples/proteins/cells.cuh: local alignments with affine gaps on GPUs: the arithmetic of cells.
//
// Threads side by side, a team of `width`, align two sequences of the database with a query, in the
// halves of 32-bit words. Where these don't suffice, they align each of them again in whole words.
// A thread has so many rows of the matrix of cells (letters of the query) in registers. The team
// passes over the columns (letters of the database) as a wave: in a step each thread is one column
// behind the thread before it, which hands it the last of its cells. A query of more rows than a
// team has takes several passes; the last row of a pass is kept in the scratch memory for the next.
//
// A block aligns with one query at a time, whose scores by letter are in shared memory.
//
// Source: O. Gotoh, An improved algorithm for matching biological sequences, J. Mol. Biol. 162,
// 1982; packed words and waves of threads as in B. Schmidt et al., CUDASW++ 4.0, BMC Bioinformatics
// 25, 2024.

constexpr int block_threads = 128;
constexpr int warp = 32;
constexpr int most_rows = 32;                // of a thread
constexpr int pass_rows = warp * most_rows;  // of the largest team
constexpr int wide_rows = 16;                // of a thread, in whole words
constexpr int letters = 32;                  // in the table of scores
constexpr int no_letter = 31;                // ends every alignment
constexpr unsigned all_lanes = 0xffffffff;
// Sums of 16 bits wrap around. A cell is at most a score, of 8 bits, above those before it: as long
// as the best is below this, none did.
constexpr int most_packed = 32767 - 127;

using Residues = quadriga::Tile<const unsigned char>;

// The numbers of one byte each of two words, as two numbers of 16 bits.
__device__ inline unsigned widened(unsigned a, unsigned b, int byte) {
#ifdef __CUDA_ARCH__
  unsigned both;  // 8 + n: the sign of byte n
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(0xC480 + 0x1111 * byte));
  return both;
#else
  const auto number = [&](unsigned word) { return static_cast<signed char>(word >> 8 * byte); };
  return (number(a) & 0xffff) | static_cast<unsigned>(number(b)) << 16;
#endif
}

// Two numbers of 16 bits in a word. Devices of architecture 90 have instructions for these.
struct Packed {
  static constexpr int sequences = 2;
  static constexpr unsigned lowest = 0xC000C000;
  __device__ static unsigned both(int x) { return (x & 0xffff) | static_cast<unsigned>(x) << 16; }
  __device__ static unsigned score(unsigned a, unsigned b, int byte) { return widened(a, b, byte); }
  __device__ static unsigned sum(unsigned a, unsigned b) { return __vadd2(a, b); }
  __device__ static unsigned larger(unsigned a, unsigned b) { return __vmaxs2(a, b); }
  __device__ static unsigned largest(unsigned a, unsigned b, unsigned c) {
    return __vimax3_s16x2(a, b, c);
  }
  // The larger of a + b and c; the same, or 0.
  __device__ static unsigned sum_or(unsigned a, unsigned b, unsigned c) {
    return __viaddmax_s16x2(a, b, c);
  }
  __device__ static unsigned sum_or_none(unsigned a, unsigned b, unsigned c) {
    return __viaddmax_s16x2_relu(a, b, c);
  }
};

struct Wide {
  static constexpr int sequences = 1;
  static constexpr unsigned lowest = 0xC0000000;
  __device__ static unsigned both(int x) { return x; }
  __device__ static unsigned score(unsigned a, unsigned, int byte) {
    return static_cast<int>(a << (24 - 8 * byte)) >> 24;
  }
  __device__ static unsigned sum(unsigned a, unsigned b) { return a + b; }
  __device__ static unsigned larger(unsigned a, unsigned b) {
    return max(static_cast<int>(a), static_cast<int>(b));
  }
  __device__ static unsigned largest(unsigned a, unsigned b, unsigned c) {
    return larger(larger(a, b), c);
  }
  __device__ static unsigned sum_or(unsigned a, unsigned b, unsigned c) { return larger(a + b, c); }
  __device__ static unsigned sum_or_none(unsigned a, unsigned b, unsigned c) {
    return larger(larger(a + b, c), 0);
  }
};
