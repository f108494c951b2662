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

struct Sequence {
  const unsigned char* residues;
  int length;
};

// A column of the profile, which has the scores of a letter with all letters of all queries; each
// query begins at a multiple of 16 and is filled up to one by the least score.
struct Query {
  const signed char* first;
  long long letter_step;
  int length;
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
  __device__ int& cell(int j) const { return data[2LL * j * step]; }
  __device__ int& gap(int j) const { return data[(2LL * j + 1) * step]; }
};

struct Gaps {
  int open;
  int extend;
};

// What the threads of a warp do together in one pass.
struct Pass {
  const signed char* table;  // Of the pass's rows: pass_rows scores a letter.
  int columns;               // Of the longest sequence.
  Edge edge;
  bool is_first;
  bool is_last;
};

// The letters of a column: a byte a sequence.
template <class A>
__device__ unsigned column_at(const Sequence* found, const unsigned char* codes, int j) {
  unsigned both = 0;
  for (int s = 0; s < A::sequences; ++s) {
    const bool is_there = j < found[s].length;
    both |= (is_there ? codes[found[s].residues[j]] : no_letter) << 8 * s;
  }
  return both;
}

// The best cell of this thread in a pass.
template <class A, int rows>
__device__ unsigned sweep(const Sequence* found, const unsigned char* codes, Team team, Gaps gaps,
                          const Pass& pass) {
  const unsigned opening = A::both(-gaps.open);
  const unsigned extending = A::both(-gaps.extend);
  const int before_last = team.width - 1;
  const signed char* const own = pass.table + team.lane * rows;
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
  const int steps = pass.columns + before_last;
  for (int begin = 0; begin < steps; begin += team.width) {
    // The wave's next columns, one a thread; the edge's alike.
    const unsigned batch = coming;
    coming = column_at<A>(found, codes, begin + team.width + team.lane);
    int cells_in = 0, gaps_in = static_cast<int>(A::lowest);
    if (!pass.is_first && begin + team.lane < pass.columns) {
      cells_in = pass.edge.cell(begin + team.lane);
      gaps_in = pass.edge.gap(begin + team.lane);
    }
    const int turns = min(team.width, (steps - begin + 1) / 2 * 2);
#pragma unroll 2
    for (int turn = 0; turn < turns; ++turn) {
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
      const int j = begin + turn - before_last;
      if (!pass.is_last && team.lane == before_last && j >= 0 && j < pass.columns) {
        pass.edge.cell(j) = cells[rows - 1];
        pass.edge.gap(j) = down;
      }
    }
  }
  return best;
}

template <class A>
__device__ unsigned sweep_by_rows(const Sequence* found, const unsigned char* codes, Team team,
                                  Gaps gaps, const Pass& pass) {
  if constexpr (A::sequences == 1) return sweep<A, wide_rows>(found, codes, team, gaps, pass);
  switch (team.rows) {
    case 4:
      return sweep<A, 4>(found, codes, team, gaps, pass);
    case 8:
      return sweep<A, 8>(found, codes, team, gaps, pass);
    case 12:
      return sweep<A, 12>(found, codes, team, gaps, pass);
    case 16:
      return sweep<A, 16>(found, codes, team, gaps, pass);
    case 20:
      return sweep<A, 20>(found, codes, team, gaps, pass);
    case 24:
      return sweep<A, 24>(found, codes, team, gaps, pass);
    case 28:
      return sweep<A, 28>(found, codes, team, gaps, pass);
    default:
      return sweep<A, most_rows>(found, codes, team, gaps, pass);
  }
}

// By all threads of a block: the scores of rows `begin` to `begin + each` of a query.
__device__ inline void fill(signed char* table, Query query, int begin, int each) {
  struct alignas(16) Sixteen {
    unsigned words[4];
  };
  constexpr int at_once = 8;
  __syncthreads();
  for (int letter = threadIdx.x / at_once; letter < letters; letter += block_threads / at_once)
    for (int row = threadIdx.x % at_once * 16; row < each; row += at_once * 16) {
      Sixteen scores = {0x80808080, 0x80808080, 0x80808080, 0x80808080};
      if (begin + row < query.length)
        scores = *reinterpret_cast<const Sixteen*>(query.first + letter * query.letter_step +
                                                   begin + row);
      *reinterpret_cast<Sixteen*>(table + letter * pass_rows + row) = scores;
    }
  __syncthreads();
}

// The best cells of a team's sequences with a query, known to all its threads. All threads of a
// block call it, for the same query; their teams are alike, and so is the table, which they fill.
template <class A>
__device__ unsigned align(const Sequence* found, const unsigned char* codes, Query query, Team team,
                          Gaps gaps, Edge edge, signed char* table) {
  int columns = max(found[0].length, A::sequences == 2 ? found[1].length : 0);
  for (int other = warp / 2; other > 0; other /= 2)
    columns = max(columns, __shfl_xor_sync(all_lanes, columns, other));
  const int each = team.width * team.rows;
  unsigned best = 0;
  for (int begin = 0; begin < query.length; begin += each) {
    fill(table, query, begin, each);
    const Pass pass{table, columns, edge, begin == 0, begin + each >= query.length};
    best = A::larger(best, sweep_by_rows<A>(found, codes, team, gaps, pass));
  }
  for (int other = team.width / 2; other > 0; other /= 2)
    best = A::larger(best, __shfl_xor_sync(all_lanes, best, other));
  return best;
}

__device__ inline Team team_of(int width, int rows) {
  return {width, rows, static_cast<int>(threadIdx.x) % width};
}

// The team that is done first with a query and sequences of that length: a step costs a thread some
// instructions for each row, and as many as for four rows besides.
__device__ inline Team team_for(int query_length, int sequence_length) {
  int best_width = warp, best_rows = most_rows;
  float least = -1;
  for (int width = 4; width <= warp; width *= 2)
    for (int rows = 4; rows <= most_rows; rows += 4) {
      const int passes = (query_length + width * rows - 1) / (width * rows);
      if (passes > 1 && width < warp) continue;  // As many edges as the scratch memory has.
      const float cost = 1.0F * passes * width * (sequence_length + width) * (rows + 4);
      if (least >= 0 && cost >= least) continue;
      least = cost;
      best_width = width;
      best_rows = rows;
    }
  return team_of(best_width, best_rows);
}

// The records of a chunk, in pairs in the order given, which puts those of like length side by
// side.
struct Records {
  quadriga::Tile<const unsigned char> residues;
  quadriga::Tile<const long long> starts;
  quadriga::Tile<const int> order;
  long long number;

  __device__ bool is_there(long long pair, int s) const { return 2 * pair + s < number; }
  __device__ int record(long long pair, int s) const { return order[2 * pair + s]; }
  __device__ Sequence sequence(long long pair, int s) const {
    if (!is_there(pair, s)) return {nullptr, 0};
    const long long begin = starts[record(pair, s)];
    return {&residues[begin], static_cast<int>(starts[record(pair, s) + 1] - begin)};
  }
};

// Scores of all records with all queries. A block takes a query and as many pairs as it has teams
// until none are left; `ends` are the queries' first and next-to-last places in the profile. The
// scratch memory has a column for each warp of the grid, if a query takes several passes.
__global__ void __launch_bounds__(block_threads)
    smith_waterman(Residues residues, quadriga::Tile<const long long> starts,
                   quadriga::Tile<const int> order, Residues codes,
                   quadriga::Tile<const signed char> profile, quadriga::Tile<const int> ends,
                   quadriga::Tile<int> scores, quadriga::Tile<int> scratch, int open, int extend) {
  __shared__ __align__(16) signed char table[letters * pass_rows];
  constexpr int warps = block_threads / warp;
  const Gaps gaps{open, extend};
  const Records records{residues, starts, order, scores.rows};
  const long long pairs = (scores.rows + 1) / 2;
  const long long slots = (pairs + warps - 1) / warps;
  const long long of_warp = (blockIdx.x * block_threads + threadIdx.x) / warp;
  const Edge edge{scratch.data + (scratch.cols > 1 ? of_warp * scratch.col_step : 0),
                  scratch.row_step};
  for (long long unit = blockIdx.x; unit < slots * scores.cols; unit += gridDim.x) {
    const long long q = unit % scores.cols;
    const long long slot = unit / scores.cols;  // The longest sequences come first.
    const Query query{&profile(0, ends(0, q)), profile.row_step, ends(1, q) - ends(0, q)};
    const Team team = team_for(query.length, static_cast<int>(residues.size() / scores.rows));
    const long long first = slot * (block_threads / team.width);
    if (first >= pairs) continue;  // As for all threads of the block.
    const long long pair = first + threadIdx.x / team.width;
    const Sequence found[2] = {records.sequence(pair, 0), records.sequence(pair, 1)};
    const unsigned both = align<Packed>(found, codes.data, query, team, gaps, edge, table);
    const int best[2] = {static_cast<int>(both & 0xffff), static_cast<int>(both >> 16)};
    for (int s = 0; s < 2; ++s)
      if (team.lane == 0 && records.is_there(pair, s)) scores(records.record(pair, s), q) = best[s];
    if (!__syncthreads_or(max(best[0], best[1]) >= most_packed)) continue;
    // Each warp aligns the sequences of its teams one after the other.
    const int of_a_warp = warp / team.width;
    for (int k = 0; k < 2 * of_a_warp; ++k) {
      const long long other = first + threadIdx.x / warp * of_a_warp + k / 2;
      const Sequence one = records.sequence(other, k % 2);
      const Team all = team_of(warp, wide_rows);
      const auto whole =
          static_cast<int>(align<Wide>(&one, codes.data, query, all, gaps, edge, table));
      if (all.lane == 0 && whole >= most_packed) scores(records.record(other, k % 2), q) = whole;
    }
  }
}
