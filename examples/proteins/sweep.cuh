// SPDX-License-Identifier: BSD-3-Clause
// examples/proteins/sweep.cuh: one pass of a team of threads over the columns; after cells.cuh.

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
