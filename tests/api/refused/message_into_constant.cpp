// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/message_into_constant.cpp: what can't be written can't be received into.
//
// expected: could not convert .*|no matching function|cannot convert|invalid initialization
#include <quadriga/message.h>

void bad(const quadriga::message::Communicator& comm, const std::vector<double>& values) {
  comm.recv(values, 1);
}
