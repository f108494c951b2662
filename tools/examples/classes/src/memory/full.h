// SPDX-License-Identifier: BSD-3-Clause
// src/memory/full.h: a class of 40 functions, and what is none.
#pragma once

#include <functional>
#include <vector>

namespace quadriga {

class Full {
 public:
  Full();
  explicit Full(int count) : count_(count) {}
  ~Full() { set_1(0); }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;
  friend bool operator<(const Full& one, const Full& other);
  using Made = std::function<int(int)>;
  /// A class of its own.
  struct Inner {
    int of() const { return count; }
    int count = 0;
  };
  int count_0() const noexcept { return count_; }
  void set_1(int count);
  static std::vector<int> made_2(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_3(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_4() const noexcept { return count_; }
  void set_5(int count);
  static std::vector<int> made_6(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_7(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_8() const noexcept { return count_; }
  void set_9(int count);
  static std::vector<int> made_10(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_11(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_12() const noexcept { return count_; }
  void set_13(int count);
  static std::vector<int> made_14(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_15(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_16() const noexcept { return count_; }
  void set_17(int count);
  static std::vector<int> made_18(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_19(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_20() const noexcept { return count_; }
  void set_21(int count);
  static std::vector<int> made_22(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_23(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_24() const noexcept { return count_; }
  void set_25(int count);
  static std::vector<int> made_26(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_27(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_28() const noexcept { return count_; }
  void set_29(int count);
  static std::vector<int> made_30(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_31(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_32() const noexcept { return count_; }
  void set_33(int count);
  static std::vector<int> made_34(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_35(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }
  int count_36() const noexcept { return count_; }
  void set_37(int count);
  static std::vector<int> made_38(const std::function<int(int)>& made = {});
  template <class Visit>
  void visit_39(Visit&& visit) {
    if (count_ > 0) {
      visit(count_);
    }
  }

 private:
  int count_ = 0;
  std::function<void(int)> told_;
  const int most_{(3 + 4) * 2};
};

}  // namespace quadriga
