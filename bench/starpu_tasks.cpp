// SPDX-License-Identifier: BSD-3-Clause
// bench/starpu_tasks.cpp: the empty tasks of empty_graphs.h under StarPU 1.3, as a reference.
//
// Its default scheduler and starpu_task_insert, as its documentation recommends; calibration files
// and settings are the user's. Usage: quadriga-bench-starpu CASE CORES REPEAT.
#include <starpu.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int order = 58;
constexpr int simple_tasks = 200'000;
constexpr int chains = 64;

void nothing(void**, void*) {}

starpu_codelet make_codelet(std::initializer_list<starpu_data_access_mode> modes) {
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.cpu_funcs[0] = nothing;
  codelet.nbuffers = static_cast<int>(modes.size());
  std::ranges::copy(modes, codelet.modes);
  return codelet;
}

std::vector<starpu_data_handle_t> register_tiles(std::vector<double>& elements) {
  std::vector<starpu_data_handle_t> handles(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    starpu_matrix_data_register(&handles[i], STARPU_MAIN_RAM,
                                reinterpret_cast<std::uintptr_t>(&elements[i]), 1, 1, 1,
                                sizeof(double));
  }
  return handles;
}

int submit_product(starpu_codelet& codelet, const std::vector<starpu_data_handle_t>& tiles) {
  const auto* const a = tiles.data();
  const auto* const b = a + order * order;
  const auto* const c = b + order * order;
  for (int i = 0; i < order; ++i) {
    for (int j = 0; j < order; ++j) {
      for (int k = 0; k < order; ++k) {
        starpu_task_insert(&codelet, STARPU_R, a[i * order + k], STARPU_R, b[k * order + j],
                           STARPU_RW, c[i * order + j], 0);
      }
    }
  }
  return order * order * order;
}

int submit_simple(starpu_codelet& codelet, const std::vector<starpu_data_handle_t>& tiles) {
  for (int i = 0; i < simple_tasks; ++i) {
    if (tiles.empty()) {
      starpu_task_insert(&codelet, 0);
    } else {
      starpu_task_insert(&codelet, STARPU_RW, tiles[i % chains], 0);
    }
  }
  return simple_tasks;
}

double median_ns(const char* name, int repeat) {
  const bool product = std::strcmp(name, "gemm3") == 0;
  const bool chained = std::strcmp(name, "chains") == 0;
  starpu_codelet codelet = product   ? make_codelet({STARPU_R, STARPU_R, STARPU_RW})
                           : chained ? make_codelet({STARPU_RW})
                                     : make_codelet({});
  std::vector<double> elements(product ? 3 * order * order : chained ? chains : 0);
  const std::vector<starpu_data_handle_t> tiles = register_tiles(elements);
  std::vector<double> ns;
  for (int pass = 0; pass <= repeat; ++pass) {
    const double begin = starpu_timing_now();  // Microseconds.
    const int tasks = product ? submit_product(codelet, tiles) : submit_simple(codelet, tiles);
    starpu_task_wait_for_all();
    if (pass > 0) ns.push_back((starpu_timing_now() - begin) * 1e3 / tasks);
  }
  for (const starpu_data_handle_t tile : tiles) starpu_data_unregister(tile);
  std::ranges::sort(ns);
  return ns[ns.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: quadriga-bench-starpu gemm3|independent|chains CORES REPEAT\n");
    return 2;
  }
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = std::atoi(words[2]);
  conf.ncuda = 0;
  conf.nopencl = 0;
  if (starpu_init(&conf) != 0) {
    std::fprintf(stderr, "quadriga-bench-starpu: starpu_init failed\n");
    return 1;
  }
  int major = 0;
  int minor = 0;
  int release = 0;
  starpu_get_version(&major, &minor, &release);
  const double ns = median_ns(words[1], std::max(1, std::atoi(words[3])));
  std::printf("{\"case\": \"%s\", \"value\": %.17g, \"reference\": \"StarPU %d.%d.%d\"}\n",
              words[1], ns, major, minor, release);
  starpu_shutdown();
  return 0;
}
