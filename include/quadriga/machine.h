// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/machine.h: machines: devices, memory spaces, links, kernel times.
#pragma once

#include <quadriga/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

/// The name in device lists and descriptions: "cpu", "emulated", "cuda", or that of a kind added by
/// a backend; "unknown" otherwise.
std::string_view name(DeviceKind kind) noexcept;
/// The kind with a name. Errors: invalid_argument naming the known kinds.
DeviceKind device_kind(std::string_view name);

struct Device {
  std::string name;  ///< "gpu0", "emulated1", "cpu".
  DeviceKind kind = DeviceKind::cpu;
  SpaceId space = host_space;    ///< host_space for the CPU.
  std::size_t memory_bytes = 0;  ///< Of its own memory; 0 for the CPU.
  int cores = 0;                 ///< Of a CPU.
  int compute_streams = 1;       ///< Kernels that may run at once, sharing its speed.
  int copy_engines = 2;          ///< Copies that may run at once.
  /// Queues that the commands of its streams share, in order; 0: one for each stream.
  int hardware_queues = 0;
  /// Columns of tiles start at multiples of this many bytes, a power of two; 1: contiguous.
  std::size_t pitch_alignment = 1;
  int granule = 64;         ///< Kernels are fastest on tile sizes that are multiples of this.
  std::string rates;        ///< Column of the kernel table: "gpu", "cpu".
  std::string model;        ///< "NVIDIA H200"; like all that follows, empty or 0 if unknown.
  std::string pci_address;  ///< "0000:17:00.0".
  int pcie_generation = 0;
  int pcie_lanes = 0;
  int node = any_node;  ///< The host's nearest NUMA node.
  std::string path;     ///< Of kind file: where it is created; empty: among temporary files.
  /// The fraction of the table's rate that products of short sums reach, by the length of a sum;
  /// 1 for the longest. Empty: 1 for all.
  std::map<double, double> sums = {};

  /// That fraction for any sum, interpolated like runs (Link::share).
  double share_of_sum(double length) const noexcept;
};

/// A NUMA node of the host: memory, and the cores near it. The host is one memory space whatever
/// its nodes, as all that can reach one of them reaches all; but links may differ (Route::node).
struct Node {
  int index = 0;
  std::size_t memory_bytes = 0;
  int cores = 0;
  std::vector<int> processors = {};  ///< Numbers of the system's logical processors.
  bool operator==(const Node&) const = default;
};

struct Link {
  std::string name;
  double bytes_per_second = 0;  ///< Shared max-min fairly by the copies that cross it.
  double latency_seconds = 0;
  /// The fraction of the rate that copies of separate runs, such as the columns of a tile, reach,
  /// by bytes per run; 1 for the longest. Empty: 1 for all.
  std::map<double, double> runs = {};

  /// That fraction for any run: linear in the logarithm between two entries of the table; a run
  /// shorter than all takes as long as the shortest.
  double share(double run_bytes) const noexcept;
};

/// The links that a copy crosses, by index; a link listed twice is crossed twice.
struct Route {
  SpaceId from = host_space;
  SpaceId to = host_space;
  std::vector<int> links;
  int nvlinks = 0;      ///< NVLinks between the two; 0: none, or unknown.
  int node = any_node;  ///< Of copies whose end on the host lies on this node alone.
};

/// What a message between memory of two devices costs beside its bytes, in seconds: threads of the
/// host agree, one queues a copy and finds that it has ended. 0: unknown.
struct MessageCost {
  double latency_seconds = 0;
  double busy_seconds = 0;  ///< Of it, what keeps a thread busy: the next one comes no sooner.
  bool operator==(const MessageCost&) const = default;
};

/// What planning a call costs on a core of the host, in seconds. 0: unknown.
struct PlanningCost {
  double engine_seconds = 0;   ///< A trial of a plan by the virtual clock: its engine,
  double task_seconds = 0;     ///< and each task.
  double listed_seconds = 0;   ///< Each task in a list schedule,
  double product_seconds = 0;  ///< each product of tiles when the order of a product is rehearsed.
  bool operator==(const PlanningCost&) const = default;
};

/// A machine, discovered, emulated or described by a JSON file (machines/*.json are examples).
class Machine {
 public:
  /// Reads a description. Errors: io, invalid_argument naming the key that is wrong.
  static Machine from_file(const std::string& path);
  static Machine from_json(std::string_view text);
  /// This computer as one device "cpu" with the cores that cgroups and affinity allow.
  static Machine host();
  /// The reason why no CUDA device can be used; empty if one can.
  static std::string cuda_absence();
  /// Parses "auto" (all usable GPUs, else the CPU's cores) or a device list such as
  /// "cuda", "cuda:2,memory=8GiB", "emulated:4,memory=64MiB,h2d=6GB/s,d2h=6GB/s,peer=off", "cpu:2",
  /// "cpu;emulated:2,memory=1GiB" (lists joined by ';'), or "machine=FILE[:N][,memory=BYTES]" (the
  /// first N accelerators of a description, emulated). Keys: memory, h2d, d2h, peer (off or a
  /// rate), latency (seconds), streams. Measured rates of the description that the setting
  /// `machine` names replace estimates. Errors: invalid_argument, naming the item and what is
  /// accepted, or both machines if that description is for another one.
  static Machine parse(std::string_view devices);
  /// The NUMA nodes of this computer, from hwloc if its library is installed, else from /sys.
  static std::vector<Node> host_nodes();

  std::string to_json() const;

  std::string name;
  std::vector<Device> devices;
  std::vector<Node> nodes;  ///< Empty: unknown.
  std::vector<Link> links;
  std::vector<Route> routes;
  /// Seconds by tile order, by kernel and column ("gpu", "cpu").
  std::map<std::string, std::map<std::string, std::map<double, double>>, std::less<>> kernels;
  double launch_seconds = 0;
  MessageCost message;
  PlanningCost planning;

  int spaces() const noexcept;  ///< The host's, and one per device with its own memory.
  /// Of a copy whose end on the host lies on a node: that node's route if it has one, else the one
  /// for all nodes. Null if there is no such route.
  const Route* route(SpaceId from, SpaceId to, int node = any_node) const noexcept;
  /// Time of a copy that has its links to itself; infinite if there is no route.
  double copy_seconds(SpaceId from, SpaceId to, double bytes) const noexcept;
  /// Bytes per second of a copy with such runs that has its links to itself.
  double copy_rate(const Route& route, double run_bytes) const noexcept;
  /// Time of a kernel that has a device to itself, with the rate interpolated between the orders of
  /// the table; also the time that a Cost states as seconds or work. Errors: unavailable if the
  /// table lacks the kernel for this device.
  double kernel_seconds(const Device& device, std::string_view kernel, double order,
                        double volume) const;
  /// Whether the table has the kernel for this device.
  bool has_kernel(const Device& device, std::string_view kernel) const noexcept;
};

}  // namespace quadriga
