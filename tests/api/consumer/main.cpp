// SPDX-License-Identifier: BSD-3-Clause
// tests/api/consumer/main.cpp: a user's program on the installed headers and archive.
#include <quadriga/engine.h>
#include <quadriga/linalg.h>
#include <quadriga/message.h>

#include <cstdio>
#include <span>
#include <thread>
#include <vector>

namespace linalg = quadriga::linalg;

// C = A*A on emulated devices that hold a few tiles each; A is twice the identity.
bool product_is_right() {
  constexpr std::int64_t order = 300;
  std::vector<double> a(order * order);
  std::vector<double> c(order * order);
  for (std::int64_t i = 0; i < order; ++i) a[static_cast<std::size_t>(i * order + i)] = 2;
  const auto view = [&](std::vector<double>& data) {
    return linalg::MatrixView::columns(data.data(), order, order, quadriga::DType::float64);
  };
  quadriga::EngineOptions options;
  options.devices = "emulated:2,memory=1MiB";
  quadriga::Engine engine(options);
  linalg::matmul(engine, 1, view(a), linalg::Op::none, view(a), linalg::Op::none, 0, view(c));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (c[i] != 2 * a[i]) return false;
  return engine.counters().bytes() > 0;
}

bool bad_devices_are_refused() {
  try {
    quadriga::Machine::parse("no such device");
  } catch (const quadriga::Error& error) {
    std::printf("%s\n", error.what());
    return error.code() == quadriga::Errc::invalid_argument;
  }
  return false;
}

// Two ranks, each a thread: a column of one's matrix becomes a row of the other's.
bool messages_arrive() {
  namespace message = quadriga::message;
  constexpr std::size_t order = 100;
  const auto ranks = message::local(2, 60);
  std::vector<double> sent(order * order, 1), got(order * order);
  for (std::size_t i = 0; i < order; ++i) sent[i * order + 3] = static_cast<double>(i);
  std::thread first([&] {
    const auto column = message::Layout::vector(order, 1, order, message::ElementType::float64);
    ranks[0].send({&sent[3], column}, 1);
    ranks[0].allreduce(1.0);
  });
  const message::Status status = ranks[1].recv(std::span(got).first(order));
  const double ranks_here = ranks[1].allreduce(1.0);
  first.join();
  for (std::size_t i = 0; i < order; ++i)
    if (got[i] != static_cast<double>(i)) return false;
  return status.bytes == order * sizeof(double) && ranks_here == 2;
}

int main() { return product_is_right() && bad_devices_are_refused() && messages_arrive() ? 0 : 1; }
