// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stats_json.cpp: PipelineStats as JSON.
#include "pipeline/stats_json.h"

#include <nlohmann/json.hpp>

namespace quadriga {

using Json = nlohmann::json;

std::string to_json(const PipelineStats& stats) {
  Json stages = Json::array();
  for (const StageStats& each : stats.stages)
    stages.push_back({{"name", each.name},
                      {"kind", each.kind},
                      {"chunks", each.chunks},
                      {"busy_seconds", each.busy_seconds},
                      {"waiting_seconds", each.waiting_seconds},
                      {"acquire_seconds", each.acquire_seconds},
                      {"reserve_seconds", each.reserve_seconds},
                      {"occupancy", each.occupancy},
                      {"mean_queue", each.mean_queue},
                      {"chunks_per_second", each.chunks_per_second},
                      {"latency_median", each.latency_median},
                      {"latency_99", each.latency_99}});
  const Json told{{"stages", stages},
                  {"chunks", stats.chunks},
                  {"ended", stats.ended},
                  {"failed", stats.failed},
                  {"dropped", stats.dropped},
                  {"missed", stats.missed},
                  {"repeated", stats.repeated},
                  {"seconds", stats.seconds},
                  {"bound_seconds", stats.bound_seconds},
                  {"limit", stats.limit},
                  {"latency_median", stats.latency_median},
                  {"latency_99", stats.latency_99},
                  {"most_host_bytes", stats.most_host_bytes},
                  {"most_on_device", stats.most_on_device}};
  return told.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace quadriga
