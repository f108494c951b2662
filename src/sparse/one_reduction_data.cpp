// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/one_reduction_data.cpp: starts, replacements and iterations, a task a part.
#include "sparse/one_reduction_data.h"

#include <utility>

#include "engine/engine_access.h"

namespace quadriga::sparse {

OneReductionData::OneReductionData(const SolverContent& content,
                                   const OneReductionCodelets& codelets, OneReductionOperands of,
                                   TaskGroup& group)
    : content_(content), codelets_(codelets), of_(std::move(of)), group_(group) {}

void OneReductionData::take(const std::vector<Data>& data, Access access) {
  for (const Data& each : data) take(each, access);
}

void OneReductionData::submit(const Codelet& codelet, std::size_t part,
                              std::span<const std::byte> params) {
  SubmitOptions options;
  options.device = content_.device(part);
  EngineAccess::submit(content_.engine(), codelet, operands_, params, options, &group_);
  operands_.clear();
}

void OneReductionData::submit_scalars(const Codelet& codelet, std::initializer_list<Operand> first,
                                      std::initializer_list<std::span<const Data>> sums) {
  operands_.assign(first);
  for (const std::span<const Data> each : sums)
    for (const Data& of_part : each) take(of_part, Access::read);
  submit(codelet, 0);
}

void OneReductionData::reload(std::span<const Data> x) {
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    take(content_.head(part), Access::read);
    take(x[part], Access::read);
    take(of_.work[part], Access::update);
    take(of_.sends[part], Access::write);
    submit(codelets_.part(part).reload, part);
    of_.pass(part);
  }
}

void OneReductionData::enter(const VectorMove& move) {
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    take(content_.head(part), Access::read);
    take(of_.state, Access::read);
    take(of_.work[part], Access::update);
    take(of_.sends[part], Access::write);
    submit(codelets_.part(part).enter, part, std::as_bytes(std::span(&move, 1)));
    of_.pass(part);
  }
}

void OneReductionData::move(const VectorMove& move) {
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    take(content_.head(part), Access::read);
    take(of_.work[part], Access::update);
    submit(codelets_.part(part).move, part, std::as_bytes(std::span(&move, 1)));
  }
}

/// The product of an iteration.
void OneReductionData::multiply() {
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    const OneReductionPart& codelets = codelets_.part(part);
    const auto of = [&](Data matrix, Access sums) {
      take(matrix, Access::read);
      take(of_.work[part], Access::update);
      take(of_.product_sums[part], sums);
    };
    const std::span<const Data> remainders = content_.remainders(part);
    const bool splits = content_.splits(part);
    of(content_.matrix(part), Access::write);
    if (splits) submit(codelets.inner, part);
    if (splits && remainders.empty()) of(content_.matrix(part), Access::update);
    if (!splits || remainders.empty()) {
      take(of_.arrivals[part], Access::read);
      submit(splits ? codelets.border : codelets.product, part);
    }
    for (std::size_t i = 0; i < remainders.size(); ++i) {
      of(remainders[i], Access::update);
      if (splits) take(of_.arrivals[part][i], Access::read);
      submit(splits ? codelets.remainders[i] : codelets.resting[i], part);
    }
  }
}

void OneReductionData::begin(bool keeps_direction) {
  using enum PartVector;
  const bool is_pipelined = codelets_.method() == CgMethod::pipelined;
  if (keeps_direction) {
    enter({direction, in});
    of_.multiply();
    move({out, product});
    if (is_pipelined) {
      enter({product, in, true});
      move({in, m_product});
      of_.multiply();
      move({out, am_product});
    }
  }
  enter({residual, in, true});
  if (is_pipelined) {
    move({in, u});
    of_.multiply();
    move({out, w});
    enter({w, in, true});
    for (std::size_t part = 0; part < content_.parts(); ++part) {
      take(content_.head(part), Access::read);
      take(of_.work[part], Access::read);
      take(of_.product_sums[part], Access::write);
      submit(codelets_.part(part).sum, part);
    }
    submit_scalars(codelets_.set_step(), {{of_.state, Access::update}}, {of_.product_sums});
  }
  multiply();
  if (!is_pipelined)
    submit_scalars(codelets_.set_step(), {{of_.state, Access::update}}, {of_.product_sums});
}

void OneReductionData::iterate(std::span<const Data> x) {
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    take(content_.head(part), Access::read);
    take(of_.state, Access::read);
    take(x[part], Access::update);
    take(of_.work[part], Access::update);
    take(of_.step_sums[part], Access::write);
    take(of_.sends[part], Access::write);
    submit(codelets_.part(part).step, part);
    of_.pass(part);
  }
  multiply();
  const auto state = {Operand{of_.state, Access::update}, Operand{of_.history, Access::update}};
  if (codelets_.method() == CgMethod::pipelined)
    submit_scalars(codelets_.set_scalars(), state, {of_.step_sums});
  else
    submit_scalars(codelets_.set_scalars(), state, {of_.step_sums, of_.product_sums});
}

/// The halo of the direction comes with a product; then neighbours get M*r, as classic steps send
/// it.
void OneReductionData::hand_over() {
  using enum PartVector;
  enter({direction, in});
  of_.multiply();
  enter({residual, out, true});
}

}  // namespace quadriga::sparse
