// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/message_of_texts.cpp: what isn't an element can't be sent.
//
// expected: could not convert .*|no matching function|cannot convert
#include <quadriga/message.h>

void bad(const quadriga::message::Communicator& comm, std::vector<std::string>& texts) {
  comm.send(texts, 1);
}
