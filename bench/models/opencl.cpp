// SPDX-License-Identifier: BSD-3-Clause
// bench/models/opencl.cpp: conjugate gradients by OpenCL 1.2.
// One context has all devices: a copy between them is a command, by the implementation's route.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <numeric>

#include "model.h"

namespace {

using namespace models;

const char* source = R"(
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void multiply(int rows, int adds, global const int* lengths, global const int* columns,
                     global const double* values, global const double* p, global double* q) {
  const int i = get_global_id(0);
  if (i >= rows) return;
  double sum = adds ? q[i] : 0;
  for (int j = 0; j < lengths[i]; ++j) {
    const size_t at = (size_t)j * rows + i;
    sum += values[at] * p[columns[at]];
  }
  q[i] = sum;
}
kernel void add_step(int rows, double alpha, global double* x, global double* r,
                     global const double* p, global const double* q) {
  const int i = get_global_id(0);
  if (i < rows) x[i] += alpha * p[i];
  if (i < rows) r[i] -= alpha * q[i];
}
kernel void turn(int rows, double beta, global const double* r, global double* p) {
  const int i = get_global_id(0);
  if (i < rows) p[i] = r[i] + beta * p[i];
}
kernel void dot_parts(int rows, global const double* one, global const double* other,
                      global double* sums) {
  double sum = 0;
  for (int i = get_global_id(0); i < rows; i += get_global_size(0)) sum += one[i] * other[i];
  sums[get_global_id(0)] = sum;
}
)";

void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "OpenCL: %s failed: %d\n", what, status);
  std::exit(1);
}

constexpr std::size_t sums_count = 4096, group = 64;

/// One half's buffers and queues.
struct OnDevice {
  cl_device_id device = nullptr;
  cl_command_queue first = nullptr, second = nullptr;
  cl_int rows = 0;
  struct Matrix {
    cl_mem lengths = nullptr, columns = nullptr, values = nullptr;
  } local, remote;
  cl_mem x = nullptr, r = nullptr, p = nullptr, q = nullptr, other_p = nullptr, sums = nullptr;
  cl_event made = nullptr;  ///< This half of p,
  cl_event came = nullptr;  ///< on the host,
  cl_event here = nullptr;  ///< the other half of p on this device,
  cl_event used = nullptr;  ///< and that a product has read it.
  std::vector<double> staged;

  std::size_t bytes() const { return static_cast<std::size_t>(rows) * sizeof(double); }
};

class OpenCl {
 public:
  OpenCl(const std::vector<Half>& halves, const Options& options)
      : goes_by_host_(options.exchange == "host"), on_(halves.size()) {
    find_devices();
    cl_int status = 0;
    context_ = clCreateContext(nullptr, static_cast<cl_uint>(devices_.size()), devices_.data(),
                               nullptr, nullptr, &status);
    check(status, "a context");
    program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
    check(status, "a program");
    check(clBuildProgram(program_, 0, nullptr, "", nullptr, nullptr), "the compilation of kernels");
    for (std::size_t d = 0; d < halves.size(); ++d) {
      OnDevice& on = on_[d];
      on.device = devices_[d % devices_.size()];
      for (cl_command_queue* each : {&on.first, &on.second}) {
        *each = clCreateCommandQueue(context_, on.device, 0, &status);
        check(status, "a queue");
      }
      on.rows = halves[d].rows;
      const auto rows = static_cast<std::size_t>(on.rows);
      const auto others = static_cast<std::size_t>(halves[d].other_rows);
      on.local = matrix(on, halves[d].local);
      on.remote = matrix(on, halves[d].remote);
      for (cl_mem* each : {&on.x, &on.r, &on.p, &on.q}) *each = put(on, std::vector<double>(rows));
      on.other_p = put(on, std::vector<double>(others));
      on.sums = put(on, std::vector<double>(sums_count));
      on.staged.resize(others);
    }
  }

  std::string where() const {
    char name[128] = {};
    clGetDeviceInfo(devices_.front(), CL_DEVICE_NAME, sizeof name - 1, name, nullptr);
    return std::to_string(devices_.size()) + " x " + name;
  }

  void set_vectors(int d, const double* x, const double* r, const double* p) {
    OnDevice& on = at(d);
    for (const auto& [to, from] : {std::pair{on.x, x}, {on.r, r}, {on.p, p}}) write(on, to, from);
    for (cl_event* each : {&on.made, &on.used}) mark(on.first, *each);
  }

  /// `here`: what was staged last has left the host.
  void send(int d) {
    OnDevice& from = at(d);
    OnDevice& to = at(1 - d);
    if (!goes_by_host_) return;
    if (from.came) clReleaseEvent(from.came);
    const cl_event before[] = {from.made, to.here};
    check(clEnqueueReadBuffer(from.second, from.p, CL_FALSE, 0, from.bytes(), to.staged.data(),
                              to.here ? 2 : 1, before, &from.came),
          "a copy to the host");
    clFlush(from.second);
  }
  void fetch(int d) {
    OnDevice& to = at(d);
    OnDevice& from = at(1 - d);
    const cl_event before[] = {goes_by_host_ ? from.came : from.made, to.used};
    if (to.here) clReleaseEvent(to.here);
    cl_int status = 0;
    if (goes_by_host_)
      status = clEnqueueWriteBuffer(to.second, to.other_p, CL_FALSE, 0, from.bytes(),
                                    to.staged.data(), 2, before, &to.here);
    else
      status = clEnqueueCopyBuffer(to.second, from.p, to.other_p, 0, 0, from.bytes(), 2, before,
                                   &to.here);
    check(status, "a copy to a device");
    clFlush(to.second);
  }

  void multiply_local(int d) { multiply(at(d), at(d).local, at(d).p, 0, nullptr); }
  void multiply_remote(int d) {
    multiply(at(d), at(d).remote, at(d).other_p, 1, &at(d).here);
    mark(at(d).first, at(d).used);
  }
  void step(int d, double alpha) {
    OnDevice& on = at(d);
    launch(on, "add_step", nullptr, on.rows, on.rows, alpha, on.x, on.r, on.p, on.q);
  }
  /// Waits until the other device has read p, too.
  void turn(int d, double beta) {
    OnDevice& on = at(d);
    const cl_event* const read = on_.size() == 2 ? &at(1 - d).here : nullptr;
    launch(on, "turn", read, on.rows, on.rows, beta, on.r, on.p);
    mark(on.first, on.made);
  }
  double p_q(int d) { return dot(at(d), at(d).p, at(d).q); }
  double r_r(int d) { return dot(at(d), at(d).r, at(d).r); }
  void finish(int d) {
    for (cl_command_queue each : {at(d).second, at(d).first}) check(clFinish(each), "a queue");
  }
  void get_x(int d, double* x) {
    check(clEnqueueReadBuffer(at(d).first, at(d).x, CL_TRUE, 0, at(d).bytes(), x, 0, nullptr,
                              nullptr),
          "a copy to the host");
  }

 private:
  OnDevice& at(int d) { return on_[static_cast<std::size_t>(d)]; }

  /// Those of the first platform that has GPUs, else any.
  void find_devices() {
    cl_platform_id platforms[8] = {};
    cl_uint count = 0;
    check(clGetPlatformIDs(8, platforms, &count), "looking for pocl-opencl-icd or another one");
    for (const cl_device_type type :
         {cl_device_type{CL_DEVICE_TYPE_GPU}, cl_device_type{CL_DEVICE_TYPE_ALL}})
      for (cl_uint i = 0; i < count && devices_.empty(); ++i) {
        cl_device_id found[16] = {};
        cl_uint devices = 0;
        if (clGetDeviceIDs(platforms[i], type, 16, found, &devices) == CL_SUCCESS)
          devices_.assign(found, found + devices);
      }
    check(devices_.empty() ? CL_DEVICE_NOT_FOUND : CL_SUCCESS, "a device");
  }

  template <class T>
  cl_mem put(OnDevice& on, const std::vector<T>& from) {
    cl_int status = 0;
    const std::size_t bytes = from.size() * sizeof(T);
    cl_mem to = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes + sizeof(T), nullptr, &status);
    check(status, "memory of a device");
    if (bytes > 0)
      check(clEnqueueWriteBuffer(on.first, to, CL_TRUE, 0, bytes, from.data(), 0, nullptr, nullptr),
            "a copy to a device");
    return to;
  }
  OnDevice::Matrix matrix(OnDevice& on, const EllpackR& a) {
    return {put(on, a.lengths), put(on, a.columns), put(on, a.values)};
  }
  void write(OnDevice& on, cl_mem to, const double* from) {
    check(clEnqueueWriteBuffer(on.first, to, CL_TRUE, 0, on.bytes(), from, 0, nullptr, nullptr),
          "a copy to a device");
  }
  static void mark(cl_command_queue queue, cl_event& event) {
    if (event) clReleaseEvent(event);
    check(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "a marker");
  }

  template <class... Arguments>
  void launch(OnDevice& on, const char* name, const cl_event* after, cl_int items,
              const Arguments&... arguments) {
    cl_kernel kernel = clCreateKernel(program_, name, nullptr);
    check(kernel ? CL_SUCCESS : CL_INVALID_KERNEL_NAME, name);
    cl_uint place = 0;
    (check(clSetKernelArg(kernel, place++, sizeof arguments, &arguments), name), ...);
    const std::size_t size = (static_cast<std::size_t>(items) + group - 1) / group * group;
    check(clEnqueueNDRangeKernel(on.first, kernel, 1, nullptr, &size, &group, after ? 1 : 0, after,
                                 nullptr),
          name);
    clFlush(on.first);
    clReleaseKernel(kernel);
  }
  void multiply(OnDevice& on, const OnDevice::Matrix& a, cl_mem p, cl_int adds,
                const cl_event* after) {
    launch(on, "multiply", after, on.rows, on.rows, adds, a.lengths, a.columns, a.values, p, on.q);
  }
  double dot(OnDevice& on, cl_mem one, cl_mem other) {
    launch(on, "dot_parts", nullptr, static_cast<cl_int>(sums_count), on.rows, one, other, on.sums);
    double sums[sums_count];
    check(
        clEnqueueReadBuffer(on.first, on.sums, CL_TRUE, 0, sizeof sums, sums, 0, nullptr, nullptr),
        "a copy to the host");
    return std::accumulate(sums, sums + sums_count, 0.0);
  }

  bool goes_by_host_;
  std::vector<cl_device_id> devices_;
  cl_context context_ = nullptr;
  cl_program program_ = nullptr;
  std::vector<OnDevice> on_;
};

}  // namespace

int main(int count, char** words) {
  return models::run<OpenCl>("OpenCL", models::Options::read(count, words));
}
