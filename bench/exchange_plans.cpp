// SPDX-License-Identifier: BSD-3-Clause
// bench/exchange_plans.cpp: what a plan saves of an exchange that is repeated.
//
// Two ranks exchange four borders in each direction: started one by one, and by a plan, in turn.
// Under `quadriga launch -n 2` they are processes, else threads.
#include <quadriga/error.h>
#include <quadriga/message.h>

#include <string>
#include <thread>
#include <vector>

#include "benchmarks.h"
#include "line.h"

namespace quadriga::bench {
namespace {

namespace message = quadriga::message;

constexpr int borders = 4;
constexpr int rounds = 1000;

struct Found {
  std::vector<double> single, planned;  // Seconds of an exchange, by batch.
};

Found measure(const message::Communicator& comm, std::int64_t count, int batches) {
  const int other = 1 - comm.rank();
  // Columns of a matrix.
  std::vector<double> matrix(static_cast<std::size_t>(2 * borders * count));
  const auto column = message::Layout::vector(count, 1, 2 * borders, message::ElementType::float64);
  std::vector<message::PlannedSend> sends;
  std::vector<message::PlannedReceive> receives;
  for (int i = 0; i < borders; ++i) {
    sends.push_back({{&matrix[static_cast<std::size_t>(i)], column}, other, i});
    receives.push_back({{&matrix[static_cast<std::size_t>(borders + i)], column}, other, i});
  }
  const message::ExchangePlan plan = comm.plan(sends, receives);
  const auto one_by_one = [&] {
    std::vector<message::Request> all;
    for (const auto& each : receives) all.push_back(comm.irecv(each.into, each.source, each.tag));
    for (const auto& each : sends) all.push_back(comm.isend(each.from, each.destination, each.tag));
    message::waitall(all);
  };
  const auto by_plan = [&] {
    plan.start();
    plan.wait();
  };
  const auto seconds_of = [&](const auto& exchange) {
    comm.barrier();
    const double begin = now();
    for (int i = 0; i < rounds; ++i) exchange();
    return (now() - begin) / rounds;
  };
  Found found;
  for (int batch = 0; batch <= batches; ++batch) {
    const double single = seconds_of(one_by_one), planned = seconds_of(by_plan);
    if (batch == 0) continue;
    found.single.push_back(single);
    found.planned.push_back(planned);
  }
  return found;
}

void run(const message::Communicator& comm, const std::vector<std::int64_t>& counts, int batches) {
  for (const std::int64_t count : counts) {
    const Found found = measure(comm, count, batches);
    if (comm.rank() > 0) continue;
    constexpr double per_message = 1e6 / (2 * borders);
    Line line("exchange");
    line.add("elements", static_cast<double>(count)).add("messages", 2 * borders);
    line.add("value", median(found.planned) * per_message);
    line.add("single", median(found.single) * per_message).add("unit", "us a message");
    line.print();
  }
}

std::vector<std::int64_t> counts_of(const std::string& text) {
  std::vector<std::int64_t> counts;
  for (std::size_t at = 0; at < text.size(); at = text.find(',', at) + 1) {
    counts.push_back(std::stoll(text.substr(at)));
    if (text.find(',', at) == std::string::npos) break;
  }
  return counts;
}

}  // namespace

void exchange_plans(const Settings& settings) {
  const auto counts = counts_of(settings.text("sizes", "1,64,512,4096"));
  const int batches = static_cast<int>(settings.integer("repeat", 5));
  const message::Communicator comm = message::world({60, 120});
  if (comm.size() == 2) return run(comm, counts, batches);
  require(comm.size() == 1, "exchange: expected two ranks, or no launcher");
  const auto both = message::local(2, 120);
  std::thread second([&] { run(both[1], counts, batches); });
  run(both[0], counts, batches);
  second.join();
}

}  // namespace quadriga::bench
