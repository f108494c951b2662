// SPDX-License-Identifier: BSD-3-Clause
// src/memory/bad_large.h: a class of 41 functions.
#pragma once

#include <functional>
#include <vector>

namespace quadriga {

class Large {
 public:
  Large();
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
  bool operator==(const Large& other) const;

 private:
  int count_ = 0;
};

}  // namespace quadriga
