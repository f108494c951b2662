// SPDX-License-Identifier: BSD-3-Clause
// src/memory/bad_asks.cpp: a backend is asked by who carries out, and the answer is an event.
namespace quadriga {
class Backend;
void ask(Backend& backend);
}  // namespace quadriga
