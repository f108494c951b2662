// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/stage_plan_test.cpp: segments, what rows of kernels do to fields, and order.
#include "pipeline/stage_plan.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "pipeline/flow_item.h"
#include "pipeline/row_load.h"
#include "pipeline/sequencer.h"

namespace quadriga {
namespace {

FieldShape of_hundred(const Chunk&) { return {100, 1, DType::float64}; }

Stage kernel_of(std::initializer_list<FieldUses> uses) {
  static const Codelet codelet;
  Stage stage;
  stage.kind = StageKind::kernel;
  stage.codelet = &codelet;
  for (const FieldUses& each : uses) stage.uses.insert(stage.uses.end(), each.begin(), each.end());
  return stage;
}

Stage body_of(StageKind kind) {
  Stage stage;
  stage.kind = kind;
  return stage;
}

ReturnedField returned(const std::string& name) {
  ReturnedField made;
  made.name = name;
  return made;
}

const RowField& field_of(const KernelRow& row, const std::string& name) {
  return *std::ranges::find(row.fields, name, &RowField::name);
}

TEST(StagePlan, KernelsAndParallelStagesInARowAreOneSegment) {
  const StagePlan plan({body_of(StageKind::parallel), body_of(StageKind::parallel),
                        kernel_of({updates("x")}), kernel_of({updates("x")}),
                        body_of(StageKind::serial), body_of(StageKind::serial)});
  std::vector<std::size_t> ends;
  for (const Segment& each : plan.segments()) ends.push_back(each.last);
  EXPECT_EQ(ends, (std::vector<std::size_t>{2, 4, 5, 6}));
}

TEST(KernelRow, AFieldComesIfItsFirstUseReadsAndGoesIfAnyWrites) {
  const std::vector<Stage> stages{
      kernel_of({reads("x"), writes("y", of_hundred), temporary("t", of_hundred)}),
      kernel_of({reads("t", "y"), updates("z")}), kernel_of({updates("x")})};
  const KernelRow row(stages, {0, 3});
  ASSERT_EQ(row.fields.size(), 4u);
  EXPECT_TRUE(field_of(row, "x").is_head && field_of(row, "x").is_tail);
  EXPECT_TRUE(!field_of(row, "y").is_head && field_of(row, "y").is_tail);
  EXPECT_TRUE(!field_of(row, "t").is_head && !field_of(row, "t").is_tail);
  EXPECT_TRUE(field_of(row, "t").is_temporary);
  EXPECT_TRUE(field_of(row, "z").is_head && field_of(row, "z").is_tail);
  EXPECT_EQ(row.kernels[1].operands[0].field, 2u);
}

TEST(KernelRow, AChunkNeedsWhatAnArenaGivesForItsFieldsAndTemporaries) {
  const std::vector<Stage> stages{kernel_of({reads("x"), temporary("t", of_hundred)}),
                                  kernel_of({reads("t"), reads("empty")})};
  Chunk chunk(0);
  chunk.add("x", 3, 1, DType::float64);
  chunk.add("empty", 0, 5, DType::float64);
  const StreamChunk needs = needs_of(KernelRow(stages, {0, 2}), chunk);
  EXPECT_EQ(needs.bytes, 256u + 1024u + 256u);
  EXPECT_TRUE(needs.has_head);
  EXPECT_FALSE(needs.has_tail);
  ChunkLoad load;
  add_bytes(load, KernelRow(stages, {0, 2}), chunk);
  EXPECT_EQ(load.bytes_in, 24);
  EXPECT_EQ(load.bytes_out, 0);
}

TEST(KernelRow, WhatAKernelReturnsEndsAStepAndReplacesAField) {
  std::vector<Stage> stages{kernel_of({reads("x"), temporary("t", of_hundred)}),
                            kernel_of({updates("x")}), kernel_of({reads("t")}),
                            kernel_of({reads("x")})};
  stages[1].returns = {returned("t"), returned("x")};
  const KernelRow row(stages, {0, 4});
  EXPECT_EQ(row.end_of_step(0), 2u);
  EXPECT_EQ(row.end_of_step(2), 4u);
  ASSERT_EQ(row.fields.size(), 4u);
  EXPECT_FALSE(row.fields[0].is_tail) << "x as it was is nobody's";
  EXPECT_TRUE(row.fields[2].is_temporary && !row.fields[2].is_tail);
  EXPECT_TRUE(row.fields[3].is_tail && !row.fields[3].is_head);
  EXPECT_EQ(row.kernels[2].operands[0].field, 2u);
  EXPECT_EQ(row.kernels[3].operands[0].field, 3u);
}

TEST(ReturnedField, IsPresumedToBeAsLargeAsThoseBefore) {
  ReturnedField made = returned("y");
  Chunk chunk(0);
  chunk.add("x", 100, 1, DType::float64);
  EXPECT_EQ(made.expected_bytes(chunk), 800u);
  made.came(chunk, {nullptr, 25, 1, 25, DType::float64});
  EXPECT_EQ(made.expected_bytes(chunk), 200u);
  made.came(chunk, {nullptr, 50, 1, 50, DType::float64});
  made.came(chunk, {nullptr, 10, 1, 10, DType::float64});
  EXPECT_EQ(made.expected_bytes(chunk), 400u);
  made.most = [](const Chunk&) { return std::size_t{72}; };
  EXPECT_EQ(made.expected_bytes(chunk), 72u);
  made.came(chunk, {nullptr, 9, 1, 9, DType::float64});
  EXPECT_THROW(made.came(chunk, {nullptr, 10, 1, 10, DType::float64}), Error);
}

TEST(KernelRow, ATemporaryIsWrittenFirst) {
  FieldUse use{"t", Access::update};
  use.is_temporary = true;
  const std::vector<Stage> stages{kernel_of({FieldUses{use}})};
  EXPECT_THROW(KernelRow(stages, Segment{0, 1}), Error);
}

TEST(Sequencer, GivesChunksByNumberWhateverOrderTheyComeIn) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<FlowItem*> items(64);
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    Sequencer sequencer;
    std::vector<FlowItem*> expected;
    std::vector<FlowItem*> found;
    for (std::size_t i = 0; i < items.size(); ++i) {
      // An address is all that it looks at; one in four won't come.
      if (random.below(4) > 0)
        items[i] = reinterpret_cast<FlowItem*>(static_cast<std::uintptr_t>(i + 1));
      if (items[i]) expected.push_back(items[i]);
    }
    for (const std::size_t number : order) {
      sequencer.put(number, items[number]);
      while (FlowItem* const item = sequencer.take()) found.push_back(item);
    }
    sequencer.put(0, nullptr);  // of one that has passed this changes nothing
    EXPECT_EQ(sequencer.take(), nullptr);
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace quadriga
