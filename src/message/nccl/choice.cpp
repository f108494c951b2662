// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/choice.cpp: NCCL's numbers, who may join, and whose line is below.
#include "message/nccl/choice.h"

#include <set>

namespace quadriga::message {
namespace {

// NCCL's types: 0 and 1 are of 8 bits, signed and not; so are the pairs of 32 and 64 bits.
std::optional<NcclNumbers> nccl_type_of(ElementType type) {
  switch (type) {
    case ElementType::int8:
      return NcclNumbers{0, 0, 1};
    case ElementType::uint8:
      return NcclNumbers{1, 0, 1};
    case ElementType::int32:
      return NcclNumbers{2, 0, 4};
    case ElementType::uint32:
      return NcclNumbers{3, 0, 4};
    case ElementType::int64:
      return NcclNumbers{4, 0, 8};
    case ElementType::uint64:
      return NcclNumbers{5, 0, 8};
    case ElementType::float32:
    case ElementType::complex64:
      return NcclNumbers{7, 0, 4};
    case ElementType::float64:
    case ElementType::complex128:
      return NcclNumbers{8, 0, 8};
    default:
      return {};
  }
}

bool is_integer(ElementType type) {
  return type >= ElementType::int8 && type <= ElementType::uint64;
}
bool is_of_two(ElementType type) {
  return type == ElementType::complex64 || type == ElementType::complex128;
}

}  // namespace

std::optional<NcclNumbers> nccl_numbers(TreeCollective kind, ElementType type,
                                        ReduceOperation operation) {
  if (kind == TreeCollective::broadcast || kind == TreeCollective::all_gather) return NcclNumbers{};
  std::optional<NcclNumbers> found = nccl_type_of(type);
  if (!found) return {};
  switch (operation) {
    case ReduceOperation::sum:
      found->operation = 0;
      return found;
    case ReduceOperation::prod:
      found->operation = 1;
      return is_of_two(type) ? std::nullopt : found;
    case ReduceOperation::max:
      found->operation = 2;
      return is_integer(type) ? found : std::nullopt;
    case ReduceOperation::min:
      found->operation = 3;
      return is_integer(type) ? found : std::nullopt;
    default:
      return {};
  }
}

NcclOffer NcclOffer::and_also(const NcclOffer& other) const noexcept {
  NcclOffer both;
  both.version_least = std::min(version_least, other.version_least);
  both.version_greatest = std::max(version_greatest, other.version_greatest);
  both.group_least = std::min(group_least, other.group_least);
  both.group_greatest = std::max(group_greatest, other.group_greatest);
  return both;
}

bool may_join(std::span<const NcclPlace> ranks) {
  std::set<std::uint64_t> devices;
  std::set<std::int64_t> processes;
  for (const NcclPlace& each : ranks)
    if (each.device == 0 || !devices.insert(each.device).second ||
        !processes.insert(each.process).second)
      return false;
  return true;
}

double MeasuredWays::seconds(const WaySeconds& way, std::int64_t bytes) const noexcept {
  if (bytes <= few_bytes || many_bytes <= few_bytes) return way.few;
  const double rise = std::max(0.0, way.many - way.few);
  const double share =
      static_cast<double>(bytes - few_bytes) / static_cast<double>(many_bytes - few_bytes);
  return way.few + rise * share;
}

}  // namespace quadriga::message
