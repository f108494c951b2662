// SPDX-License-Identifier: BSD-3-Clause
// src/device/device_speed.cpp: reads how fast a described device's processors and memory are.
#include "device/device_speed.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <string>

namespace quadriga {
namespace {

using SpeedJson = nlohmann::ordered_json;

double positive(const SpeedJson& speed, const char* key) {
  const double value = speed.contains(key) && speed[key].is_number() ? speed[key].get<double>() : 0;
  require(value > 0, fmt::format("devices[0].speed.{}: expected a number above zero", key));
  return value;
}

int number(std::string_view text) {
  int value = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_one = read.ec == std::errc() && read.ptr == text.data() + text.size() && value >= 0;
  require(is_one, "devices[0].speed.capability: expected two numbers, as \"9.0\"");
  return value;
}

}  // namespace

DeviceSpeed speed_of_first(std::string_view description) {
  const SpeedJson json = SpeedJson::parse(description);
  const SpeedJson& device = json.at("devices").at(0);
  require(device.contains("speed"), "devices[0]: expected a member \"speed\"");
  const SpeedJson& speed = device["speed"];
  const std::string capability = speed.value("capability", "");
  const std::size_t dot = std::min(capability.find('.'), capability.size());
  const std::string_view text = capability;
  return {number(text.substr(0, dot)),
          number(dot < text.size() ? text.substr(dot + 1) : std::string_view()),
          static_cast<int>(positive(speed, "processors")), positive(speed, "clock"),
          positive(speed, "memory_rate")};
}

}  // namespace quadriga
