// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/codelet_test.cpp: users' codelets on GPUs: functors, kernels that were compiled while
// the program runs, variants that wait.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <atomic>
#include <thread>

#include "device/device_kernel.h"
#include "gpu/elementwise.h"
#include "gpu/on_device.h"
#include "gpu/sleep.h"

namespace quadriga::kernels {
namespace {

// y[i] += a for i < n, as NVRTC wrote it, for the oldest architecture that we compile for.
constexpr const char* add_in_ptx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 y, .param .u64 n, .param .f64 a)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .f64 %fd<4>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [n];
  ld.param.f64 %fd1, [a];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mul.wide.u32 %rd4, %r1, %r2;
  mov.u32 %r3, %tid.x;
  cvt.u64.u32 %rd5, %r3;
  add.s64 %rd1, %rd4, %rd5;
  setp.ge.s64 %p1, %rd1, %rd3;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd6, %rd2;
  shl.b64 %rd7, %rd1, 3;
  add.s64 %rd8, %rd6, %rd7;
  ld.global.f64 %fd2, [%rd8];
  add.f64 %fd3, %fd2, %fd1;
  st.global.f64 [%rd8], %fd3;
DONE:
  ret;
}
)";

std::map<int, DeviceKernel::Image> images(const std::string& code, const std::string& name) {
  std::map<int, DeviceKernel::Image> by_architecture;
  // A text ends with a zero, which is part of it.
  for (const int each : cuda_architectures())
    by_architecture[each] = {std::string(code.c_str(), code.size() + 1), name};
  return by_architecture;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& cause) {
    return cause.what();
  }
  return "";
}

class CodeletTest : public OnDevice {
 protected:
  // Adds to a column of doubles by the kernel.
  Codelet adding(DeviceKernel& kernel, DeviceKernel::Shape shape) {
    Codelet codelet{.name = "add", .access = {Access::update}};
    codelet.cuda = [&kernel, shape](const Arguments& call) {
      void* data = call.operands[0].data;
      std::int64_t count = call.operands[0].rows;
      auto value = call.param<double>();
      std::vector<void*> values{&data, &count, &value};
      kernel.launch(call.stream, shape, values);
    };
    return codelet;
  }
};

TEST_F(CodeletTest, FunctorsRunOnEachElementOnHostAndDevice) {
  const Codelet axpy = elementwise_axpy();
  const Codelet product = elementwise_product();
  for (const auto& [rows, cols, margin] :
       {std::tuple(1, 1, 0), {1000, 1, 3}, {1, 500, 2}, {300, 70, 0}, {257, 33, 5}, {0, 4, 1}}) {
    Matrix<double> x = Matrix<double>::random(rows, cols, 1, margin);
    Matrix<float> factors = Matrix<float>::random(rows, cols, 2, margin + 1);
    Matrix<double> device = Matrix<double>::random(rows, cols, 3, margin);
    Matrix<double> host = device;
    run(axpy, {view_of(x), view_of(device)}, Factor{0.5});
    const Factor half{0.5};
    const View on_host[] = {view_of(x), view_of(host)};
    axpy.cpu({on_host, std::as_bytes(std::span(&half, 1))});
    EXPECT_EQ(message_of(error_), "");
    Matrix<double> result(rows, cols, margin);
    run(product, {view_of(x), view_of(factors), view_of(result)}, Factor{2});
    EXPECT_EQ(message_of(error_), "");
    for (int j = 0; j < cols; ++j)
      for (int i = 0; i < rows; ++i) {
        ASSERT_NEAR(device(i, j), host(i, j), 1e-15) << i << ", " << j;
        ASSERT_NEAR(result(i, j), 2 * x(i, j) * static_cast<double>(factors(i, j)), 1e-14);
      }
  }
}

TEST_F(CodeletTest, FunctorsRefuseOperandsOfOtherShapesAndTypes) {
  Matrix<double> x(4, 4), y(4, 5);
  run(elementwise_axpy(), {view_of(x), view_of(y)}, Factor{1});
  EXPECT_NE(message_of(error_).find("one shape"), std::string::npos) << message_of(error_);
  Matrix<float> single(4, 4);
  run(elementwise_axpy(), {view_of(single), view_of(x)}, Factor{1});
  EXPECT_NE(message_of(error_).find("another type"), std::string::npos) << message_of(error_);
}

TEST_F(CodeletTest, CompiledKernelsAreLoadedAndLaunched) {
  DeviceKernel kernel("codelet 'add'", images(add_in_ptx, "add"));
  Matrix<double> y(1000, 1);
  for (int round = 1; round <= 3; ++round) {
    run(adding(kernel, {.grid = {4, 1, 1}, .block = {256, 1, 1}}), {view_of(y)}, 1.5);
    ASSERT_EQ(message_of(error_), "");
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(y(i, 0), 1.5 * round);
  }
  run(adding(kernel, {.grid = {0, 1, 1}, .block = {256, 1, 1}}), {view_of(y)}, 1.5);
  EXPECT_EQ(message_of(error_), "");
  EXPECT_EQ(y(7, 0), 4.5);
  // More than a block has without being asked for.
  const DeviceKernel::Shape wide{.grid = {4, 1, 1}, .block = {256, 1, 1}, .shared_bytes = 64 << 10};
  run(adding(kernel, wide), {view_of(y)}, 1.0);
  EXPECT_EQ(message_of(error_), "");
  EXPECT_EQ(y(999, 0), 5.5);
}

TEST_F(CodeletTest, ARefusedLaunchIsTheTasksFailureAndTheStreamGoesOn) {
  DeviceKernel kernel("codelet 'add'", images(add_in_ptx, "add"));
  Matrix<double> y(10, 1);
  run(adding(kernel, {.grid = {1, 1, 1}, .block = {2048, 1, 1}}), {view_of(y)}, 1.0);
  EXPECT_NE(message_of(error_).find("codelet 'add': launching"), std::string::npos)
      << message_of(error_);
  run(adding(kernel, {.grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 1u << 30}),
      {view_of(y)}, 1.0);
  EXPECT_NE(message_of(error_).find("shared memory"), std::string::npos) << message_of(error_);
  DeviceKernel absent("codelet 'add'", images(add_in_ptx, "subtract"));
  run(adding(absent, {}), {view_of(y)}, 1.0);
  EXPECT_NE(message_of(error_).find("subtract"), std::string::npos) << message_of(error_);
  DeviceKernel broken("codelet 'add'", images("no code at all", "add"));
  run(adding(broken, {}), {view_of(y)}, 1.0);
  EXPECT_NE(message_of(error_), "");
  run(adding(kernel, {.grid = {1, 1, 1}, .block = {32, 1, 1}}), {view_of(y)}, 1.0);
  EXPECT_EQ(message_of(error_), "");
  EXPECT_EQ(y(9, 0), 1);
}

// A chain on one tile, in which each third variant waits; others run meanwhile.
TEST(WaitingVariants, KeepTheOrderOfTheirData) {
  if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  const Codelet axpy = elementwise_axpy();
  std::atomic<int> calls{0};
  Codelet slow = axpy;
  slow.name = "slow";
  slow.waits_to_queue = true;
  slow.cuda = [&](const Arguments& call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    queue_sleep(call.stream, 1);
    axpy.cuda(call);
    ++calls;
  };
  constexpr int tiles = 8, rounds = 60, size = 1000;
  std::vector<std::vector<double>> values(tiles, std::vector<double>(size, 1.0));
  Engine engine({.devices = "cuda:1,memory=64MiB"});
  std::vector<Data> data;
  for (std::vector<double>& each : values)
    data.push_back(engine.data(each.data(), size, 1, size, DType::float64));
  std::vector<double> expected(tiles, 1.0);
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < tiles; ++i) {
      const int from = (i + 1) % tiles;
      engine.submit(round % 3 == i % 3 ? slow : axpy,
                    {{data[from], Access::read}, {data[i], Access::update}}, Factor{0.25});
      expected[i] += 0.25 * expected[from];
    }
  engine.wait();
  EXPECT_EQ(calls, tiles * rounds / 3);
  for (int i = 0; i < tiles; ++i) EXPECT_NEAR(values[i][size - 1] / expected[i], 1, 1e-12) << i;
}

}  // namespace
}  // namespace quadriga::kernels
