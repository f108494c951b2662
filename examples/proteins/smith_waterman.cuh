// SPDX-License-Identifier: BSD-3-Clause
// examples/proteins/smith_waterman.cuh: local alignment scores with affine gaps, for GPUs.
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
constexpr int most_rows = 16;                // of a thread
constexpr int pass_rows = warp * most_rows;  // of the largest team
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

struct Sequence {
  const unsigned char* residues;
  long long length;
};

// Threads that align together, and this thread's place among them.
struct Team {
  int width;
  int rows;  // of a thread
  int lane;
};

// So many words, read by one instruction where there is one.
template <int number>
struct alignas(number % 4 == 0   ? 16
               : number % 2 == 0 ? 8
                                 : 4) Words {
  unsigned each[number];
};

// What a pass leaves to the next, of column j: the cell of its last row, and the best score of a
// gap from there to the next row.
struct Edge {
  int* data;
  long long step;
  __device__ int& cell(long long j) const { return data[2 * j * step]; }
  __device__ int& gap(long long j) const { return data[(2 * j + 1) * step]; }
};

struct Gaps {
  int open;
  int extend;
};

// A team's letters of a column: a byte a sequence.
template <class A>
__device__ unsigned column_at(const Sequence* found, const unsigned char* codes, long long j) {
  unsigned both = 0;
  for (int s = 0; s < A::sequences; ++s) {
    const bool is_there = j < found[s].length;
    both |= (is_there ? codes[found[s].residues[j]] : no_letter) << 8 * s;
  }
  return both;
}

// What the threads of a warp do together in one pass.
struct Pass {
  const signed char* table;  // Of the pass's rows: pass_rows scores a letter.
  long long steps;
  Edge edge;
  bool is_first;
  bool is_last;
};

// The best cell of this thread in a pass.
template <class A, int rows>
__device__ unsigned sweep(const Sequence* found, const unsigned char* codes, Team team, Gaps gaps,
                          const Pass& pass) {
  const unsigned opening = A::both(-gaps.open);
  const unsigned extending = A::both(-gaps.extend);
  const int before_last = team.width - 1;
  unsigned cells[rows], along[rows];  // of the column before; gaps from there to this column
#pragma unroll
  for (int k = 0; k < rows; ++k) {
    cells[k] = 0;
    along[k] = A::lowest;
  }
  unsigned best = 0;
  unsigned corner = 0;        // The cell above this thread's rows, of the column before,
  unsigned above = 0;         // and of this one,
  unsigned down = A::lowest;  // and the gap from there to its first row.
  unsigned column = no_letter * 0x101;
  unsigned coming = column_at<A>(found, codes, team.lane);
  unsigned batch = 0;
  int cells_in = 0, gaps_in = 0;  // Of the edge, as `batch`.
  for (long long t = 0; t < pass.steps; ++t) {
    const int turn = t & before_last;
    if (turn == 0) {  // The wave's next columns, one a thread.
      batch = coming;
      coming = column_at<A>(found, codes, t + team.width + team.lane);
      if (!pass.is_first) {
        const long long j = t + team.lane;
        const bool is_there = j < max(found[0].length, A::sequences == 2 ? found[1].length : 0LL);
        cells_in = is_there ? pass.edge.cell(j) : 0;
        gaps_in = is_there ? pass.edge.gap(j) : static_cast<int>(A::lowest);
      }
    }
    column = __shfl_up_sync(all_lanes, column, 1, team.width);
    const unsigned entering = __shfl_sync(all_lanes, batch, turn, team.width);
    above = __shfl_up_sync(all_lanes, cells[rows - 1], 1, team.width);
    down = __shfl_up_sync(all_lanes, down, 1, team.width);
    unsigned cell_in = 0, gap_in = A::lowest;
    if (!pass.is_first) {
      cell_in = __shfl_sync(all_lanes, cells_in, turn, team.width);
      gap_in = __shfl_sync(all_lanes, gaps_in, turn, team.width);
    }
    if (team.lane == 0) {
      column = entering;
      above = cell_in;
      down = gap_in;
    }
    const signed char* const own = pass.table + team.lane * rows;
    const auto scores_of = [own](unsigned letter) {
      return *reinterpret_cast<const Words<rows / 4>*>(own + letter * pass_rows);
    };
    const Words<rows / 4> of_a = scores_of(column & 0xff);
    const Words<rows / 4> of_b = scores_of(column >> 8);
    unsigned diagonal = corner;
    unsigned before = 0;
    corner = above;
#pragma unroll
    for (int k = 0; k < rows; ++k) {
      const unsigned score = A::score(of_a.each[k / 4], of_b.each[k / 4], k % 4);
      const unsigned cell = A::sum_or_none(diagonal, score, A::larger(along[k], down));
      const unsigned opened = A::sum(cell, opening);
      along[k] = A::sum_or(along[k], extending, opened);
      down = A::sum_or(down, extending, opened);
      diagonal = cells[k];
      cells[k] = cell;
      if (k % 2 == 1) best = A::largest(best, before, cell);
      before = cell;
    }
    const long long j = t - before_last;
    if (!pass.is_last && team.lane == before_last && j >= 0) {
      pass.edge.cell(j) = cells[rows - 1];
      pass.edge.gap(j) = down;
    }
  }
  return best;
}

// The best cells of a team's sequences with a query, known to all its threads. All threads of a
// block call it, for the same query; their teams are alike, and so is the table, which they fill.
template <class A>
__device__ unsigned align(const Sequence* found, const unsigned char* codes,
                          quadriga::Tile<const signed char> profile, long long query_begin,
                          long long query_length, Team team, Gaps gaps, Edge edge,
                          signed char* table) {
  int columns = max(found[0].length, A::sequences == 2 ? found[1].length : 0LL);
  for (int other = warp / 2; other > 0; other /= 2)
    columns = max(columns, __shfl_xor_sync(all_lanes, columns, other));
  const int each = team.width * team.rows;
  unsigned best = 0;
  for (long long begin = 0; begin < query_length; begin += each) {
    __syncthreads();
    for (int k = threadIdx.x; k < letters * each; k += block_threads) {
      const int letter = k / each;
      const int row = k % each;
      table[letter * pass_rows + row] =
          begin + row < query_length ? profile(letter, query_begin + begin + row) : -128;
    }
    __syncthreads();
    const Pass pass{table, columns + team.width - 1LL, edge, begin == 0,
                    begin + each >= query_length};
    unsigned here = 0;
    if (team.rows == 4)
      here = sweep<A, 4>(found, codes, team, gaps, pass);
    else if (team.rows == 8)
      here = sweep<A, 8>(found, codes, team, gaps, pass);
    else if (team.rows == 12)
      here = sweep<A, 12>(found, codes, team, gaps, pass);
    else
      here = sweep<A, 16>(found, codes, team, gaps, pass);
    best = A::larger(best, here);
  }
  for (int other = team.width / 2; other > 0; other /= 2)
    best = A::larger(best, __shfl_xor_sync(all_lanes, best, other));
  return best;
}

// The team that is done first with a query and sequences of that length: a step costs a thread some
// instructions for each row, and as many as for four rows besides.
__device__ inline Team team_for(long long query_length, long long sequence_length) {
  Team best{warp, most_rows, 0};
  long long least = 0;
  for (int width = 4; width <= warp; width *= 2)
    for (int rows = 4; rows <= most_rows; rows += 4) {
      const long long passes = (query_length + width * rows - 1) / (width * rows);
      if (passes > 1 && width < warp) continue;  // As many edges as the scratch memory has.
      const long long cost = passes * width * (sequence_length + width) * (rows + 4);
      if (least > 0 && cost >= least) continue;
      least = cost;
      best = {width, rows, 0};
    }
  best.lane = threadIdx.x % best.width;
  return best;
}

// Scores of all records with all queries. Records are taken in pairs in the order given, which
// puts those of like length side by side. The profile has the scores of each letter with all
// letters of all queries; the scratch memory a column for each warp of the grid, if a query takes
// several passes.
__global__ void __launch_bounds__(block_threads)
    smith_waterman(Residues residues, quadriga::Tile<const long long> starts,
                   quadriga::Tile<const int> order, Residues codes,
                   quadriga::Tile<const signed char> profile,
                   quadriga::Tile<const long long> query_starts, quadriga::Tile<int> scores,
                   quadriga::Tile<int> scratch, int open, int extend) {
  __shared__ __align__(16) signed char table[letters * pass_rows];
  const Gaps gaps{open, extend};
  const long long pairs = (scores.rows + 1) / 2;
  const long long slots = (pairs + block_threads / warp - 1) / (block_threads / warp);
  const long long warp_number = (blockIdx.x * block_threads + threadIdx.x) / warp;
  const Edge edge{scratch.data + (scratch.cols > 1 ? warp_number * scratch.col_step : 0),
                  scratch.row_step};
  for (long long unit = blockIdx.x; unit < slots * scores.cols; unit += gridDim.x) {
    const long long q = unit / slots;
    const long long begin = query_starts[q];
    const long long length = query_starts[q + 1] - begin;
    const Team team = team_for(length, residues.size() / scores.rows);
    const int teams = block_threads / team.width;
    const long long pair = unit % slots * teams + threadIdx.x / team.width;
    if (unit % slots * teams >= pairs) continue;  // As for all threads of the block.
    Sequence found[2] = {};
    for (int s = 0; s < 2 && 2 * pair + s < scores.rows; ++s) {
      const int record = order[2 * pair + s];
      found[s] = {&residues[starts[record]], starts[record + 1] - starts[record]};
    }
    const unsigned both =
        align<Packed>(found, codes.data, profile, begin, length, team, gaps, edge, table);
    int best[2] = {static_cast<int>(both & 0xffff), static_cast<int>(both >> 16)};
    if (__syncthreads_or(max(best[0], best[1]) >= most_packed))
      for (int s = 0; s < 2; ++s) {
        const unsigned whole =
            align<Wide>(found + s, codes.data, profile, begin, length, team, gaps, edge, table);
        if (best[s] >= most_packed) best[s] = static_cast<int>(whole);
      }
    for (int s = 0; s < 2 && 2 * pair + s < scores.rows; ++s)
      if (team.lane == 0) scores(order[2 * pair + s], q) = best[s];
  }
}
