// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/device_parts.cpp: making parts, and one result of them.
#include "pipeline/device_parts.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "engine/engine_access.h"

namespace quadriga {
namespace {

std::string text_of(const View& view) {
  return fmt::format("{} x {} of {}", view.rows, view.cols, name(view.dtype));
}

}  // namespace

DeviceParts::~DeviceParts() {
  try {
    for (auto& [key, part] : parts_) engine_.remove(part.data, true);
  } catch (...) {
    // The engine is broken, or still in use: its own calls say so.
  }
}

Data DeviceParts::of(const FieldUse& use, const Chunk& chunk, DeviceId device, std::uint32_t place,
                     bool is_counted) {
  const Device& on = engine_.machine().devices[device];
  const int lanes = on.space == host_space ? std::max(1, on.cores) : 1;
  const FieldShape shape = use.shape(chunk);
  const View wanted{nullptr, shape.rows, shape.cols, std::max<std::int64_t>(1, shape.rows),
                    shape.dtype};
  check(use.name, chunk, wanted);
  Part& part = parts_[{use.name, device, place % static_cast<std::uint32_t>(lanes), is_counted}];
  if (!part.data) {
    part.reduction = use.reduction;
    part.memory.resize(std::max<std::size_t>(1, bytes_of(wanted)));
    part.view = wanted;
    part.view.data = part.memory.data();
    if (part.reduction->init) part.reduction->init(part.view);
    part.data = EngineAccess::add(engine_, no_device, part.view, {.keep = true}, true);
  }
  return part.data;
}

/// All parts of a result have one shape.
void DeviceParts::check(const std::string& result, const Chunk& chunk, const View& wanted) {
  const View& known = shapes_.try_emplace(result, wanted).first->second;
  if (known.rows != wanted.rows || known.cols != wanted.cols || known.dtype != wanted.dtype)
    fail(Errc::invalid_argument,
         fmt::format("chunk {} gives a result '{}' of {}, chunks before gave {}", chunk.id().text(),
                     result, text_of(wanted), text_of(known)));
}

void DeviceParts::combine() {
  std::vector<Data> data;
  for (const auto& [key, part] : parts_)
    if (std::get<bool>(key)) data.push_back(part.data);
  TaskGroup none;
  try {
    EngineAccess::wait(engine_, none, data);
  } catch (const Error& error) {
    for (const auto& [key, part] : parts_)
      if (const DeviceId device = std::get<DeviceId>(key); EngineAccess::is_lost(engine_, device))
        fail(Errc::device_lost, fmt::format("results of all chunks are lost with device '{}'",
                                            engine_.machine().devices[device].name));
    fail(error.code(), fmt::format("results of all chunks are lost: {}", error.what()));
  }
  for (const auto& [key, part] : parts_) {
    if (!std::get<bool>(key)) continue;
    const auto [result, is_first] = results_.try_emplace(std::get<0>(key), part.view);
    if (!is_first) part.reduction->combine(result->second, part.view);
  }
}

}  // namespace quadriga
