// SPDX-License-Identifier: BSD-3-Clause
// examples/proteins/smith_waterman.cuh: local alignment scores with affine gaps, for GPUs.
//
// A thread aligns two sequences of the database with a query, in the halves of 32-bit words. Where
// these don't suffice, it aligns each of them again in whole words. The matrix of cells is computed
// in strips of so many columns (letters of the database) that stay in registers; the last column of
// a strip is kept in the scratch memory, an element a letter of the query, for the next strip.
//
// Source: O. Gotoh, An improved algorithm for matching biological sequences, J. Mol. Biol. 162,
// 1982; packed words as in Y. Liu et al., CUDASW++ 3.0, BMC Bioinformatics 14, 2013.

constexpr int strip = 16;
constexpr int no_letter = 31;  // a column of the profile that ends every alignment
// Sums of 16 bits wrap around. A cell is at most a score, of 8 bits, above those before it: as long
// as the best is below this, none did.
constexpr int most_packed = 32767 - 127;

// Two numbers of 16 bits in a word. Devices of architecture 90 have instructions for these.
struct Packed {
  static constexpr int sequences = 2;
  static constexpr unsigned lowest = 0xC000C000;
  __device__ static unsigned both(int x) { return (x & 0xffff) | static_cast<unsigned>(x) << 16; }
  __device__ static unsigned scores(const signed char* row, const int* letters) {
    return (row[letters[0]] & 0xffff) | static_cast<unsigned>(row[letters[1]]) << 16;
  }
  __device__ static unsigned sum(unsigned a, unsigned b) { return __vadd2(a, b); }
  __device__ static unsigned larger(unsigned a, unsigned b) { return __vmaxs2(a, b); }
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
  __device__ static unsigned scores(const signed char* row, const int* letters) {
    return row[letters[0]];
  }
  __device__ static unsigned sum(unsigned a, unsigned b) { return a + b; }
  __device__ static unsigned larger(unsigned a, unsigned b) {
    return max(static_cast<int>(a), static_cast<int>(b));
  }
  __device__ static unsigned sum_or(unsigned a, unsigned b, unsigned c) { return larger(a + b, c); }
  __device__ static unsigned sum_or_none(unsigned a, unsigned b, unsigned c) {
    return larger(larger(a + b, c), 0);
  }
};

struct Sequence {
  const unsigned char* residues;
  long long length;
};

// A query: 32 scores of int8 a letter.
struct Query {
  const signed char* profile;
  long long length;
};

// What a thread keeps between strips: of row i, the cell of the strip's last column, and the best
// score of a gap from there to the next column.
struct Edge {
  int* data;
  long long step;
  __device__ int& cell(long long i) const { return data[2 * i * step]; }
  __device__ int& gap(long long i) const { return data[(2 * i + 1) * step]; }
};

template <class A>
__device__ unsigned align(const Sequence* found, const unsigned char* codes, Query query, Edge edge,
                          int open, int extend) {
  const unsigned opening = A::both(-open);
  const unsigned extending = A::both(-extend);
  const long long columns =
      max(found[0].length, A::sequences == 2 ? found[1].length : static_cast<long long>(0));
  unsigned best = 0;
  for (long long begin = 0; begin < columns; begin += strip) {
    int letters[strip][2];
    unsigned above[strip], down[strip];  // cells of the row before, gaps from there to this row
    for (int c = 0; c < strip; ++c) {
      above[c] = 0;
      down[c] = A::lowest;
      for (int s = 0; s < A::sequences; ++s)
        letters[c][s] =
            begin + c < found[s].length ? codes[found[s].residues[begin + c]] : no_letter;
    }
    unsigned corner = 0;
    for (long long i = 0; i < query.length; ++i) {
      unsigned along = begin == 0 ? A::lowest : edge.gap(i);
      unsigned diagonal = corner;
      corner = begin == 0 ? 0 : edge.cell(i);
#pragma unroll
      for (int c = 0; c < strip; ++c) {
        const unsigned score = A::scores(query.profile + 32 * i, letters[c]);
        const unsigned cell = A::sum_or_none(diagonal, score, A::larger(along, down[c]));
        const unsigned opened = A::sum(cell, opening);
        along = A::sum_or(along, extending, opened);
        down[c] = A::sum_or(down[c], extending, opened);
        diagonal = above[c];
        above[c] = cell;
        best = A::larger(best, cell);
      }
      edge.cell(i) = above[strip - 1];
      edge.gap(i) = along;
    }
  }
  return best;
}

// Scores of all records with all queries. Records are taken in pairs in the order given, which
// puts those of like length side by side; each thread of the grid takes pairs until none is left.
__global__ void smith_waterman(
    quadriga::Tile<const unsigned char> residues, quadriga::Tile<const long long> starts,
    quadriga::Tile<const int> order, quadriga::Tile<const unsigned char> codes,
    quadriga::Tile<const signed char> profile, quadriga::Tile<const long long> query_starts,
    quadriga::Tile<int> scores, quadriga::Tile<int> scratch, int open, int extend) {
  const long long lane = quadriga::thread_x();
  if (lane >= scratch.cols) return;
  const Edge edge{&scratch(0, lane), scratch.row_step};
  const long long pairs = (scores.rows + 1) / 2;
  for (long long task = lane; task < pairs * scores.cols; task += scratch.cols) {
    const long long pair = task % pairs;
    const long long q = task / pairs;
    const long long row = query_starts[q];
    const Query query{&profile(row, 0), query_starts[q + 1] - row};
    const int number = 2 * pair + 1 < scores.rows ? 2 : 1;
    Sequence found[2] = {};
    for (int s = 0; s < number; ++s) {
      const int record = order[2 * pair + s];
      found[s] = {&residues[starts[record]], starts[record + 1] - starts[record]};
    }
    const unsigned both = align<Packed>(found, codes.data, query, edge, open, extend);
    for (int s = 0; s < number; ++s) {
      int score = (both >> 16 * s) & 0xffff;
      if (score >= most_packed)
        score = align<Wide>(found + s, codes.data, query, edge, open, extend);
      scores(order[2 * pair + s], q) = score;
    }
  }
}
