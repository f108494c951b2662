// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/cases.cpp: the backends that run on any machine.
#include "backend_contract.h"

namespace quadriga {

std::vector<BackendCase> memory_backends() {
  const auto emulated = [](Machine machine) { return make_emulated_backend(std::move(machine)); };
  const auto virtual_clock = [](Machine machine) {
    return make_virtual_backend(std::move(machine), {.compute = true, .noise = 0.1, .seed = 1});
  };
  const auto protecting = [](Machine machine) {
    return make_virtual_backend(std::move(machine), {.compute = true, .protect = true});
  };
  const auto faultless = [](Machine machine) {
    return make_faulty_backend(make_emulated_backend(std::move(machine)), {});
  };
  const auto beside_cores = [](Machine machine) {
    machine.devices.push_back(Machine::host().devices.front());
    return make_backend(machine);
  };
  std::vector<BackendCase> cases{{"emulated", DeviceKind::emulated, emulated},
                                 {"beside_cores", DeviceKind::emulated, beside_cores},
                                 {"virtual", DeviceKind::emulated, virtual_clock},
                                 {"protected", DeviceKind::emulated, protecting},
                                 {"faultless", DeviceKind::emulated, faultless}};
  const auto sharing = [](Machine machine) {
    return make_emulated_backend(std::move(machine), {.shares_memory = true});
  };
  cases[0].make_sharing = sharing;
  cases[1].make_sharing = [](Machine machine) {
    machine.devices.push_back(Machine::host().devices.front());
    BackendOptions options;
    options.emulated_options.shares_memory = true;
    return make_backend(machine, options);
  };
  cases[4].make_sharing = [sharing](Machine machine) {
    return make_faulty_backend(sharing(std::move(machine)), {});
  };
  return cases;
}

std::vector<BackendCase> all_backends() {
  std::vector<BackendCase> cases = memory_backends();
  cases.push_back({"cpu", DeviceKind::cpu,
                   [](Machine machine) { return make_cpu_backend(std::move(machine)); }});
  cases.push_back({"virtual_cpu", DeviceKind::cpu,
                   [](Machine machine) { return make_virtual_backend(std::move(machine)); }});
  cases.push_back({"joined", DeviceKind::emulated,
                   [](const Machine& machine) { return make_backend(mixed_machine(machine)); }});
  return cases;
}

}  // namespace quadriga
