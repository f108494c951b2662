// SPDX-License-Identifier: BSD-3-Clause
// bench/models/openacc.cpp: conjugate gradients by OpenACC.
// Two asynchronous queues per device. There are no copies between devices: p goes by way of the
// host, which waits for the first of the two copies. Without devices all runs on the host.
#include <openacc.h>

#include "model.h"

namespace {

using namespace models;

/// Arrays of one half in a device's memory.
struct OnDevice {
  int rows = 0;
  int other_rows = 0;
  struct Matrix {
    int *lengths = nullptr, *columns = nullptr;
    double* values = nullptr;
  } local, remote;
  double *x = nullptr, *r = nullptr, *p = nullptr, *q = nullptr, *other_p = nullptr;
  std::vector<double> staged;  ///< On the host: the half of p on its way.
};

template <class T>
T* put(const std::vector<T>& from) {
  const std::size_t bytes = from.size() * sizeof(T);
  T* const to = static_cast<T*>(acc_malloc(bytes + sizeof(T)));
  if (!to) {
    std::fprintf(stderr, "the device has no room for %zu bytes\n", bytes);
    std::exit(1);
  }
  if (bytes > 0) acc_memcpy_to_device(to, const_cast<T*>(from.data()), bytes);
  return to;
}

class OpenAcc {
 public:
  OpenAcc(const std::vector<Half>& halves, const Options&)
      : type_(acc_get_device_type()), on_(halves.size()) {
    devices_ = acc_get_num_devices(type_);
    for (std::size_t d = 0; d < halves.size(); ++d) {
      OnDevice& on = select(static_cast<int>(d));
      on.rows = halves[d].rows;
      on.other_rows = halves[d].other_rows;
      on.local = matrix(halves[d].local);
      on.remote = matrix(halves[d].remote);
      const std::vector<double> zeros(static_cast<std::size_t>(on.rows));
      on.staged.assign(static_cast<std::size_t>(on.other_rows), 0);
      for (double** each : {&on.x, &on.r, &on.p, &on.q}) *each = put(zeros);
      on.other_p = put(on.staged);
    }
  }
  ~OpenAcc() {
    for (int d = 0; d < static_cast<int>(on_.size()); ++d) {
      OnDevice& on = select(d);
      for (double* each : {on.x, on.r, on.p, on.q, on.other_p}) acc_free(each);
      for (const OnDevice::Matrix& a : {on.local, on.remote}) {
        acc_free(a.lengths);
        acc_free(a.columns);
        acc_free(a.values);
      }
    }
  }

  std::string where() const {
    return type_ == acc_device_host || devices_ == 0 ? "the host: no devices"
                                                     : std::to_string(devices_) + " devices";
  }

  void set_vectors(int d, const double* x, const double* r, const double* p) {
    OnDevice& on = select(d);
    const std::size_t bytes = bytes_of(on);
    acc_memcpy_to_device(on.x, const_cast<double*>(x), bytes);
    acc_memcpy_to_device(on.r, const_cast<double*>(r), bytes);
    acc_memcpy_to_device(on.p, const_cast<double*>(p), bytes);
  }

  void send(int d) {
    // What was staged last has left the host.
    OnDevice& to = select(1 - d);
    acc_wait(second(1 - d));
    OnDevice& from = select(d);
    // The second queue follows what the first one has queued so far: p.
    acc_wait_async(first(d), second(d));
    acc_memcpy_from_device_async(to.staged.data(), from.p, bytes_of(from), second(d));
  }
  void fetch(int d) {
    OnDevice& from = select(1 - d);
    acc_wait(second(1 - d));
    OnDevice& to = select(d);
    // The last product still reads what was fetched for it.
    acc_wait_async(first(d), second(d));
    acc_memcpy_to_device_async(to.other_p, to.staged.data(), bytes_of(from), second(d));
  }

  void multiply_local(int d) {
    OnDevice& on = select(d);
    multiply(on, on.local, on.p, false, first(d));
  }
  void multiply_remote(int d) {
    OnDevice& on = select(d);
    acc_wait_async(second(d), first(d));
    multiply(on, on.remote, on.other_p, true, first(d));
  }

  void step(int d, double alpha) {
    OnDevice& on = select(d);
    const int rows = on.rows, queue = first(d);
    double *x = on.x, *r = on.r, *p = on.p, *q = on.q;
#pragma acc parallel loop deviceptr(x, r, p, q) async(queue)
    for (int i = 0; i < rows; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
  }
  /// The other device has read p: its fetch() waited for that.
  void turn(int d, double beta) {
    OnDevice& on = select(d);
    const int rows = on.rows, queue = first(d);
    double *r = on.r, *p = on.p;
#pragma acc parallel loop deviceptr(r, p) async(queue)
    for (int i = 0; i < rows; ++i) p[i] = r[i] + beta * p[i];
  }

  double p_q(int d) { return dot(d, select(d).p, select(d).q); }
  double r_r(int d) { return dot(d, select(d).r, select(d).r); }
  void finish(int d) {
    select(d);
    acc_wait(first(d));
    acc_wait(second(d));
  }
  void get_x(int d, double* x) {
    finish(d);
    const OnDevice& on = select(d);
    acc_memcpy_from_device(x, on.x, bytes_of(on));
  }

 private:
  static std::size_t bytes_of(const OnDevice& on) {
    return static_cast<std::size_t>(on.rows) * sizeof(double);
  }
  static int first(int d) { return 2 * d; }
  static int second(int d) { return 2 * d + 1; }
  /// Makes a half's device the current one.
  OnDevice& select(int d) {
    if (devices_ > 0) acc_set_device_num(d % devices_, type_);
    return on_[static_cast<std::size_t>(d)];
  }

  static OnDevice::Matrix matrix(const EllpackR& a) {
    return {put(a.lengths), put(a.columns), put(a.values)};
  }

  static void multiply(OnDevice& on, const OnDevice::Matrix& a, double* p, bool adds, int queue) {
    const int rows = on.rows;
    int *lengths = a.lengths, *columns = a.columns;
    double *values = a.values, *q = on.q;
#pragma acc parallel loop deviceptr(lengths, columns, values, p, q) async(queue)
    for (int i = 0; i < rows; ++i) {
      double sum = adds ? q[i] : 0;
#pragma acc loop seq
      for (int j = 0; j < lengths[i]; ++j) {
        const std::size_t at = static_cast<std::size_t>(j) * static_cast<std::size_t>(rows) +
                               static_cast<std::size_t>(i);
        sum += values[at] * p[columns[at]];
      }
      q[i] = sum;
    }
  }

  double dot(int d, double* one, double* other) {
    const int rows = select(d).rows, queue = first(d);
    double sum = 0;
#pragma acc parallel loop deviceptr(one, other) copy(sum) reduction(+ : sum) async(queue)
    for (int i = 0; i < rows; ++i) sum += one[i] * other[i];
    acc_wait(queue);
    return sum;
  }

  acc_device_t type_;
  int devices_ = 0;
  std::vector<OnDevice> on_;
};

}  // namespace

int main(int count, char** words) {
  models::Options options = models::Options::read(count, words);
  if (options.exchange != "host") {
    std::fprintf(stderr, "OpenACC has no copies between devices; expected --exchange host\n");
    return 2;
  }
  return models::run<OpenAcc>("OpenACC", options);
}
