// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/refusals_test.cpp: what submit() and data() refuse, naming what was wrong.
#include <quadriga/engine.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class RefusalsTest : public EngineTest {
 protected:
  /// The code, and what the message must hold.
  template <class Act>
  void refuses(Errc code, std::initializer_list<std::string_view> parts, Act&& act) {
    try {
      act();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      for (const std::string_view part : parts)
        EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
            << part << " is missing in: " << error.what();
    }
  }
  Codelet& nothing(std::vector<Access> signature) {
    return codelet("nothing", std::move(signature), [](const Arguments&) {});
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, RefusalsTest, every_engine(), where_name);

TEST_P(RefusalsTest, OperandsThatDontFitTheSignature) {
  const Data a = tile(), b = tile();
  Codelet& two = nothing({Access::read, Access::update});
  refuses(Errc::invalid_argument, {"nothing", "2", "1"}, [&] {
    engine().submit(two, {{a, Access::read}});
  });
  refuses(Errc::invalid_argument, {"nothing", "operand 1", "update", "write"}, [&] {
    engine().submit(two, {{a, Access::read}, {b, Access::write}});
  });
  refuses(Errc::invalid_argument, {"operands 0 and 1", "same data"}, [&] {
    engine().submit(two, {{a, Access::read}, {a, Access::update}});
  });
  refuses(Errc::invalid_argument, {"operand 0", "not data of this engine"}, [&] {
    engine().submit(two, {{Data(), Access::read}, {b, Access::update}});
  });
  Codelet& reads = nothing({Access::read, Access::read});
  engine().submit(reads, {{a, Access::read}, {a, Access::read}});
  wait();
}

TEST_P(RefusalsTest, DataOfAnotherEngineOrRemoved) {
  Codelet& one = nothing({Access::update});
  const Data data = tile();
  double home[8];
  Engine other(options_for(GetParam()));
  const Data foreign = other.data(home, 8, 1, 8, DType::float64);
  refuses(Errc::invalid_argument, {"not data of this engine"}, [&] {
    engine().submit(one, {{foreign, Access::update}});
  });
  engine().remove(data);
  refuses(Errc::invalid_argument, {"not data of this engine"}, [&] {
    engine().submit(one, {{data, Access::update}});
  });
}

TEST_P(RefusalsTest, CodeletsWithoutAVariant) {
  if (GetParam() == Where::virtual_gpus) GTEST_SKIP() << "its devices run what is for GPUs only";
  Codelet& gpu_only = nothing({Access::update});
  gpu_only.cpu = nullptr;
  gpu_only.cuda = [](const Arguments&) {};
  const Data data = tile();
  refuses(Errc::unavailable, {"nothing"}, [&] {
    engine().submit(gpu_only, {{data, Access::update}});
  });
}

TEST_P(RefusalsTest, TasksThatFitNoDeviceAreRefusedWithBothSizes) {
  if (GetParam() == Where::host) GTEST_SKIP() << "works on the user's memory";
  make([](EngineOptions& options) {
    const std::string devices = "emulated:2,memory=64KiB";
    if (options.machine) {
      auto kernels = options.machine->kernels;
      options.machine = Machine::parse(devices);
      options.machine->kernels = kernels;
    }
    options.devices = devices;
  });
  std::vector<double> home(3 * 4096);
  std::vector<Data> data;
  for (std::size_t i = 0; i < 3; ++i)
    data.push_back(engine().data(home.data() + i * 4096, 64, 64, 64, DType::float64));
  Codelet& two = nothing({Access::read, Access::update});
  Codelet& three = nothing({Access::read, Access::read, Access::update});
  engine().submit(two, {{data[0], Access::read}, {data[1], Access::update}});
  refuses(Errc::too_large, {"96 KiB", "98304", "64 KiB", "65536"}, [&] {
    engine().submit(three,
                    {{data[0], Access::read}, {data[1], Access::read}, {data[2], Access::update}});
  });
  engine().submit(three,
                  {{data[0], Access::read}, {data[0], Access::read}, {data[2], Access::update}});
  wait();
}

TEST_P(RefusalsTest, TilesThatCantBe) {
  double home[8];
  refuses(Errc::invalid_argument, {"-1"}, [&] { engine().data(home, -1, 2, 4, DType::float64); });
  refuses(Errc::invalid_argument, {"leading dimension 3", "4 rows"},
          [&] { engine().data(home, 4, 2, 3, DType::float64); });
  refuses(Errc::invalid_argument, {"home"},
          [&] { engine().data(nullptr, 4, 2, 4, DType::float64); });
}

TEST_P(RefusalsTest, ContentThatNothingWrote) {
  const Data data = engine().temporary(8, 1, DType::float64);
  Codelet& read = nothing({Access::read});
  engine().submit(read, {{data, Access::read}});
  refuses(Errc::task_failed, {"nothing wrote it"}, [&] { wait(); });
}

TEST_P(RefusalsTest, AnOwnerThatMeansSomethingElse) {
  constexpr DeviceId reserved = no_device - 1;
  Codelet& touch = nothing({Access::update});
  const Data data = tile();
  refuses(Errc::invalid_argument, {"nothing", "owner", "65534", "no_device"}, [&] {
    engine().submit(touch, {{data, Access::update}}, {.owner = reserved});
  });
}

TEST_P(RefusalsTest, EmptyTiles) {
  Codelet& touch = nothing({Access::read, Access::write, Access::update});
  const Data a = engine().data(nullptr, 0, 5, 0, DType::float64);
  const Data b = engine().temporary(0, 0, DType::float64);
  const Data c = engine().data(nullptr, 5, 0, 5, DType::float32);
  engine().submit(touch, {{a, Access::read}, {b, Access::write}, {c, Access::update}});
  wait();
}

TEST_P(RefusalsTest, ManyOperandsAndLargeParameters) {
  struct Large {
    std::array<double, 100> values{};
  };
  Large large;
  large.values[99] = 3;
  std::vector<Operand> operands;
  std::vector<Access> signature;
  for (std::size_t i = 0; i < 12; ++i) {
    signature.push_back(i ? Access::read : Access::update);
    operands.push_back({tile(static_cast<double>(i)), signature.back()});
  }
  Codelet& sum = codelet("sum", signature, [](const Arguments& a) {
    for (std::size_t i = 1; i < a.operands.size(); ++i) first(a) += first(a, i);
    first(a) *= a.param<Large>().values[99];
  });
  engine().submit(sum, operands, std::as_bytes(std::span(&large, 1)));
  wait();
  EXPECT_EQ(home(0), 3 * 66);
}

TEST_P(RefusalsTest, AnAccessThatAChildLetsGoStaysItsParents) {
  const Data data = tile();
  Codelet& one = nothing({Access::update});
  HostAccess access = engine().on_host(data, Access::update);
  const Future behind = engine().submit(one, {{data, Access::update}});
  const pid_t child = fork();
  if (child == 0) {
    constexpr unsigned patience = 60;  // Ends a child that waits for threads which it doesn't have.
    alarm(patience);
    const bool is_awaited = access.is_awaited();
    access.release();
    _exit(is_awaited ? 1 : 7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "it waits for ever";
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(engine().done(behind));
  access.release();
  wait();
}

TEST_P(RefusalsTest, UseAfterForkRaises) {
  const Data data = tile();
  Codelet& one = nothing({Access::update});
  engine().submit(one, {{data, Access::update}});
  wait();
  const pid_t child = fork();
  if (child == 0) {
    int refused = 0;
    const auto expect = [&](auto&& act) {
      try {
        act();
      } catch (const Error& error) {
        refused += std::string_view(error.what()).find("fork") != std::string_view::npos;
      }
    };
    expect([&] { engine().submit(one, {{data, Access::update}}); });
    expect([&] { engine().wait(); });
    expect([&] { engine().wait(data); });
    expect([&] { engine().temporary(8, 1, DType::float64); });
    expect([&] { engine().remove(data); });
    expect([&] { engine().final(data); });
    expect([&] { engine().evict(data); });
    expect([&] { engine().cancel(); });
    expect([&] { engine().counters(); });
    expect([&] { engine().reset_counters(); });
    expect([&] { engine().status(); });
    _exit(refused);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 11);
}

}  // namespace
}  // namespace quadriga
