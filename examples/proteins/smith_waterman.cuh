// SPDX-License-Identifier: BSD-3-Clause
// examples/proteins/smith_waterman.cuh: scores of all records with all queries; after sweep.cuh.

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
