// SPDX-License-Identifier: BSD-3-Clause
// src/engine/c_tasks.cpp: task_c.h; arguments are checked, handles hold what C can't.
#include <quadriga/task_c.h>

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/c_engine.h"
#include "engine/c_tasks.h"

using quadriga::Access;
using quadriga::c_guarded;
using quadriga::Codelet;
using quadriga::DType;
using quadriga::dtype_of;
using quadriga::Engine;
using quadriga::Future;
using quadriga::opened;
using quadriga::refuse;

struct quadriga_access {
  quadriga::HostAccess access;
};

static_assert(std::is_trivially_copyable_v<Future> && sizeof(Future) == sizeof(quadriga_task));

namespace {

// In the order of DType.
constexpr std::string_view letters = "sdczb";
// Operands whose views need no memory from the heap.
constexpr std::size_t usual_operands = 8;
constexpr int known_needs = QUADRIGA_HOST_ONLY | QUADRIGA_BLOCKS | QUADRIGA_SUBMITS;

Access mode_of(int argument, int mode) {
  if (mode < QUADRIGA_READ || mode > QUADRIGA_REDUCE)
    refuse(argument, fmt::format("mode {}; expected a value of enum quadriga_mode", mode));
  return static_cast<Access>(mode);
}

quadriga_data& data_of(int argument, quadriga_data* data) {
  if (!data) refuse(argument, "the data is NULL; expected what quadriga_data_register made");
  return *data;
}

/// The variant of C as one of C++.
quadriga::Kernel kernel_of(quadriga_variant variant, void* context) {
  if (!variant) return {};
  return [variant, context](const quadriga::Arguments& given) {
    std::array<quadriga_view, usual_operands> few;
    std::vector<quadriga_view> many;
    if (given.operands.size() > few.size()) many.resize(given.operands.size());
    quadriga_view* const views = many.empty() ? few.data() : many.data();
    for (std::size_t i = 0; i < given.operands.size(); ++i) {
      const quadriga::View& of = given.operands[i];
      views[i] = {of.data, of.rows, of.cols, of.ld, letters[static_cast<std::size_t>(of.dtype)]};
    }
    const quadriga_arguments arguments{
        static_cast<std::int64_t>(given.operands.size()), views,   given.params.data(),
        static_cast<std::int64_t>(given.params.size()),   context, given.stream};
    if (const int status = variant(&arguments); status != 0)
      throw std::runtime_error(fmt::format("its variant returned {}", status));
  };
}

/// Refuses the argument for which a tile takes more bytes than any memory has.
/// The place of `rows` is `rows_at`; `cols` and `ld`, if there is one, follow.
void check_sizes(int rows_at, std::int64_t rows, std::int64_t cols, std::int64_t ld, DType type,
                 const void* home) {
  if (rows < 0) refuse(rows_at, fmt::format("{} rows; expected 0 or more", rows));
  if (cols < 0) refuse(rows_at + 1, fmt::format("{} columns; expected 0 or more", cols));
  if (ld < rows)
    refuse(rows_at + 2, fmt::format("leading dimension {} is less than the {} rows", ld, rows));
  if (rows == 0 || cols == 0) return;
  const auto most = static_cast<std::int64_t>((std::uint64_t{1} << 60) / size_of(type));
  constexpr std::string_view than = "take more bytes than any memory has at its address";
  if (rows > most) refuse(rows_at, fmt::format("{} rows {}", rows, than));
  const bool has_ld = home != nullptr;
  if (ld > most)
    refuse(rows_at + (has_ld ? 2 : 0), fmt::format("leading dimension {}: columns {}", ld, than));
  const auto after = static_cast<std::uint64_t>(~reinterpret_cast<std::uintptr_t>(home));
  if (cols > most / ld ||
      static_cast<std::uint64_t>((cols - 1) * ld + rows) * size_of(type) - 1 > after)
    refuse(rows_at + 1, fmt::format("{} columns of {} elements {}", cols, ld, than));
}

void check_modes(const quadriga_codelet* codelet, int argument, std::string_view name,
                 std::initializer_list<Access> modes) {
  if (!codelet) refuse(argument, fmt::format("`{}` is NULL; expected a codelet", name));
  if (!std::ranges::equal(codelet->codelet.access, modes))
    refuse(argument,
           fmt::format("`{}` is codelet '{}' with other modes than {}", name, codelet->codelet.name,
                       modes.size() == 1 ? "QUADRIGA_WRITE" : "QUADRIGA_UPDATE, QUADRIGA_READ"));
}

const quadriga_task& task_of(const quadriga_task* task) {
  if (!task || !task->task) refuse(2, "the task is NULL; expected what quadriga_submit set");
  return *task;
}

}  // namespace

namespace quadriga {
namespace {

/// 1 + the index of a device; 0: none.
DeviceId device_of(std::string_view name, std::int64_t number, const Engine& engine) {
  const auto devices = static_cast<std::int64_t>(engine.machine().devices.size());
  if (number < 0 || number > devices)
    fail(Errc::invalid_argument,
         fmt::format("`{}` is {}; expected 1 to {} (1 + the index of a device), or 0", name, number,
                     devices));
  return number == 0 ? no_device : static_cast<DeviceId>(number - 1);
}

}  // namespace

SubmitOptions options_of(const quadriga_submit_options& given, const Engine& engine,
                         std::vector<Future>& after) {
  SubmitOptions options;
  if (!std::in_range<int>(given.priority))
    fail(Errc::invalid_argument,
         fmt::format("`priority` is {}; expected a number of 32 bits", given.priority));
  options.priority = static_cast<int>(given.priority);
  options.device = device_of("device", given.device, engine);
  options.owner = device_of("owner", given.owner, engine);
  if (given.sequence) options.sequence = given.sequence->sequence;
  if (given.afters < 0 || (given.afters > 0 && !given.after))
    fail(Errc::invalid_argument,
         fmt::format("`afters` is {}; expected 0 or more, and as many tasks at `after`",
                     given.afters));
  for (std::int64_t i = 0; i < given.afters; ++i)
    after.push_back(std::bit_cast<Future>(given.after[i]));
  options.after = after;
  return options;
}

}  // namespace quadriga

namespace {

/// Those of the seventh argument.
quadriga::SubmitOptions seventh_options(const quadriga_submit_options* given, const Engine& engine,
                                        std::vector<Future>& after) {
  if (!given) return {};
  try {
    return options_of(*given, engine, after);
  } catch (const quadriga::Error& wrong) {
    refuse(7, wrong.what());
  }
}

}  // namespace

extern "C" {

int64_t quadriga_codelet_create(const char* name, int64_t operands, const int* modes,
                                quadriga_variant cpu, quadriga_variant cuda, void* context,
                                int64_t needs, quadriga_codelet** codelet) {
  return c_guarded([&]() -> std::int64_t {
    if (!codelet) refuse(8, "the address for the codelet is NULL");
    *codelet = nullptr;
    if (!name || !*name) refuse(1, "the name is empty; expected what traces and errors show");
    if (operands < 0) refuse(2, fmt::format("{} operands; expected 0 or more", operands));
    if (operands > 0 && !modes) refuse(3, "the modes are NULL; expected one for each operand");
    if (!cpu && !cuda) refuse(4, "both variants are NULL; expected one for cpu, cuda or both");
    if (needs < 0 || needs > known_needs)
      refuse(7, fmt::format("needs are {}; expected a sum of enum quadriga_need", needs));
    if ((needs & QUADRIGA_BLOCKS) && !(needs & QUADRIGA_HOST_ONLY))
      refuse(7, "QUADRIGA_BLOCKS without QUADRIGA_HOST_ONLY; only host threads may wait");
    Codelet made;
    made.name = name;
    for (std::int64_t i = 0; i < operands; ++i) made.access.push_back(mode_of(3, modes[i]));
    made.cpu = kernel_of(cpu, context);
    made.cuda = kernel_of(cuda, context);
    made.host_only = needs & QUADRIGA_HOST_ONLY;
    made.blocks = needs & QUADRIGA_BLOCKS;
    made.submits = needs & QUADRIGA_SUBMITS;
    *codelet = new quadriga_codelet{std::move(made)};
    return 0;
  });
}

int64_t quadriga_codelet_reduce(quadriga_codelet* codelet, const quadriga_codelet* init,
                                const quadriga_codelet* combine) {
  return c_guarded([&]() -> std::int64_t {
    if (!codelet) refuse(1, "the codelet is NULL; expected what quadriga_codelet_create made");
    check_modes(init, 2, "init", {Access::write});
    check_modes(combine, 3, "combine", {Access::update, Access::read});
    codelet->codelet.init = &init->codelet;
    codelet->codelet.combine = &combine->codelet;
    return 0;
  });
}

void quadriga_codelet_free(quadriga_codelet* codelet) { delete codelet; }

int64_t quadriga_data_register(quadriga_engine* engine, void* home, int64_t rows, int64_t cols,
                               int64_t ld, char type, quadriga_data** data) {
  return c_guarded([&]() -> std::int64_t {
    if (!data) refuse(7, "the address for the data is NULL");
    *data = nullptr;
    Engine& on = opened(engine);
    if (!home) refuse(2, "the memory is NULL; quadriga_data_temporary makes data without a home");
    const DType dtype = dtype_of(6, type, letters);
    check_sizes(3, rows, cols, ld, dtype, home);
    *data = new quadriga_data{&on, on.data(home, rows, cols, ld, dtype)};
    return 0;
  });
}

int64_t quadriga_data_temporary(quadriga_engine* engine, int64_t rows, int64_t cols, char type,
                                quadriga_data** data) {
  return c_guarded([&]() -> std::int64_t {
    if (!data) refuse(5, "the address for the data is NULL");
    *data = nullptr;
    Engine& on = opened(engine);
    const DType dtype = dtype_of(4, type, letters);
    check_sizes(2, rows, cols, rows, dtype, nullptr);
    *data = new quadriga_data{&on, on.temporary(rows, cols, dtype)};
    return 0;
  });
}

int64_t quadriga_data_wait(quadriga_data* data, double timeout) {
  return c_guarded([&]() -> std::int64_t {
    const quadriga_data& of = data_of(1, data);
    of.engine->wait(of.data, timeout);
    return 0;
  });
}

int64_t quadriga_data_remove(quadriga_data* data) {
  if (!data) return 0;
  const std::int64_t info = c_guarded([&]() -> std::int64_t {
    data->engine->remove(data->data);
    return 0;
  });
  delete data;
  return info;
}

int64_t quadriga_on_host(quadriga_data* data, int mode, double timeout, quadriga_access** access) {
  return c_guarded([&]() -> std::int64_t {
    if (!access) refuse(4, "the address for the access is NULL");
    *access = nullptr;
    const quadriga_data& of = data_of(1, data);
    const Access how = mode_of(2, mode);
    if (how == Access::commute || how == Access::reduce)
      refuse(2, fmt::format("mode {}; the host reads, writes or updates", mode));
    *access = new quadriga_access{of.engine->on_host(of.data, how, timeout)};
    return 0;
  });
}

void quadriga_release(quadriga_access* access) { delete access; }

int64_t quadriga_sequence_create(quadriga_engine* engine, quadriga_sequence** sequence) {
  return c_guarded([&]() -> std::int64_t {
    if (!sequence) refuse(2, "the address for the sequence is NULL");
    *sequence = nullptr;
    Engine& on = opened(engine);
    *sequence = new quadriga_sequence{&on, on.sequence()};
    return 0;
  });
}

int64_t quadriga_sequence_remove(quadriga_sequence* sequence) {
  if (!sequence) return 0;
  const std::int64_t info = c_guarded([&]() -> std::int64_t {
    sequence->engine->remove(sequence->sequence);
    return 0;
  });
  delete sequence;
  return info;
}

int64_t quadriga_submit(quadriga_engine* engine, const quadriga_codelet* codelet, int64_t operands,
                        quadriga_data* const* data, const void* params, int64_t params_bytes,
                        const quadriga_submit_options* options, quadriga_task* task) {
  return c_guarded([&]() -> std::int64_t {
    Engine& on = opened(engine);
    if (!codelet) refuse(2, "the codelet is NULL; expected what quadriga_codelet_create made");
    const std::vector<Access>& modes = codelet->codelet.access;
    if (operands < 0 || static_cast<std::size_t>(operands) != modes.size())
      refuse(3, fmt::format("{} operands; codelet '{}' has {}", operands, codelet->codelet.name,
                            modes.size()));
    if (operands > 0 && !data) refuse(4, "the data are NULL; expected one for each operand");
    if (params_bytes < 0 || (params_bytes > 0 && !params))
      refuse(6, fmt::format("{} bytes of parameters; expected as many at params", params_bytes));
    std::vector<quadriga::Operand> given;
    given.reserve(modes.size());
    for (std::size_t i = 0; i < modes.size(); ++i) {
      const quadriga_data& of = data_of(4, data[i]);
      if (of.engine != &on) refuse(4, fmt::format("data {} is of another engine", i));
      given.push_back({of.data, modes[i]});
    }
    std::vector<Future> after;
    const Future made = on.submit(
        codelet->codelet, given,
        std::span(static_cast<const std::byte*>(params), static_cast<std::size_t>(params_bytes)),
        seventh_options(options, on, after));
    if (task) *task = std::bit_cast<quadriga_task>(made);
    return 0;
  });
}

int64_t quadriga_task_wait(quadriga_engine* engine, const quadriga_task* task, double timeout) {
  return c_guarded([&]() -> std::int64_t {
    opened(engine).wait(std::bit_cast<Future>(task_of(task)), timeout);
    return 0;
  });
}

int64_t quadriga_task_done(quadriga_engine* engine, const quadriga_task* task, int* done) {
  return c_guarded([&]() -> std::int64_t {
    if (!done) refuse(3, "the address for the answer is NULL");
    *done = opened(engine).done(std::bit_cast<Future>(task_of(task)));
    return 0;
  });
}

int64_t quadriga_wait_all(quadriga_engine* engine, double timeout) {
  return c_guarded([&]() -> std::int64_t {
    opened(engine).wait(timeout);
    return 0;
  });
}

int64_t quadriga_cancel(quadriga_engine* engine) {
  return c_guarded([&]() -> std::int64_t {
    opened(engine).cancel();
    return 0;
  });
}

}  // extern "C"
