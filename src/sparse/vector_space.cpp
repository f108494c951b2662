// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/vector_space.cpp: operations on vectors and scalars become tasks.
#include "sparse/vector_space.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <exception>

#include "engine/engine_access.h"

namespace quadriga::sparse {
namespace {

std::vector<std::int64_t> blocks_of_parts(const SolverContent& content) {
  std::vector<std::int64_t> blocks;
  for (std::size_t part = 0; part < content.parts(); ++part)
    blocks.push_back(content.plan(part).shape.blocks);
  return blocks;
}

bool is_settled(const VectorTerms& terms) {
  return terms.size() == 1 && terms[0].factor == 1.0 && !terms[0].scalar;
}

template <class Params>
std::span<const std::byte> bytes_of_params(const Params& params) {
  return std::as_bytes(std::span(&params, 1));
}

ScalarValue as_value(std::complex<double> number) { return {number.real(), number.imag()}; }

/// Where something is in a list; it is added if it isn't there.
template <class T>
std::int32_t place_of(std::vector<const T*>& all, const T* wanted) {
  const auto found = std::ranges::find(all, wanted);
  if (found != all.end()) return static_cast<std::int32_t>(found - all.begin());
  all.push_back(wanted);
  return static_cast<std::int32_t>(all.size() - 1);
}

}  // namespace

VectorBuffer::~VectorBuffer() { space_->give_back(std::move(parts_)); }

ScalarContent::~ScalarContent() { space->give_back(std::move(cell)); }

VectorSpace::VectorSpace(std::shared_ptr<const SolverContent> solver)
    : solver_(std::move(solver)),
      codelets_(solver_->dtype(), blocks_of_parts(*solver_)),
      data_(*solver_, 1, MKind::blocks) {
  for (std::size_t part = 0; part < solver_->parts(); ++part)
    sums_.push_back(solver_->engine().temporary(
        solver_->plan(part).shape.blocks * (is_complex() ? 2 : 1), 1, DType::float64));
}

VectorSpace::~VectorSpace() {
  try {
    Engine& engine = solver_->engine();
    EngineAccess::cancel(engine, data_.group());
    for (const std::vector<Data>& each : free_buffers_) engine.remove(each, true);
    for (const ScalarCell& each : free_cells_) engine.remove(each.data, true);
    engine.remove(sums_, true);
  } catch (...) {
    // An engine that has broken down said so where somebody waited.
  }
}

bool VectorSpace::is_complex() const noexcept {
  return dtype() == DType::complex64 || dtype() == DType::complex128;
}

void VectorSpace::give_back(std::vector<Data> parts) noexcept {
  const std::lock_guard lock(mutex_);
  free_buffers_.push_back(std::move(parts));
}

void VectorSpace::give_back(ScalarCell cell) noexcept {
  const std::lock_guard lock(mutex_);
  free_cells_.push_back(std::move(cell));
}

VectorSpace::BufferRef VectorSpace::new_buffer() {
  std::vector<Data> parts;
  {
    const std::lock_guard lock(mutex_);
    if (!free_buffers_.empty()) {
      parts = std::move(free_buffers_.back());
      free_buffers_.pop_back();
    }
  }
  for (std::size_t part = parts.size(); part < solver_->parts(); ++part)
    parts.push_back(solver_->engine().temporary(solver_->plan(part).shape.rows, 1, dtype()));
  return std::make_shared<const VectorBuffer>(shared_from_this(), std::move(parts));
}

ScalarCell VectorSpace::new_cell() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_cells_.empty()) {
      ScalarCell cell = std::move(free_cells_.back());
      free_cells_.pop_back();
      return cell;
    }
  }
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(ScalarValue));
  auto home = std::make_unique<ScalarValue>();
  const Data data = EngineAccess::add(solver_->engine(), no_device,
                                      {home.get(), bytes, 1, bytes, DType::bytes}, {}, true);
  return {std::move(home), data};
}

Vector VectorSpace::vector_of(BufferRef buffer) {
  auto content = std::make_shared<VectorContent>();
  content->space = shared_from_this();
  content->terms.push_back({1, nullptr, std::move(buffer)});
  return Vector(std::move(content));
}

Scalar VectorSpace::scalar_of(ScalarCell cell, bool is_complex) {
  Scalar scalar;
  scalar.content_ =
      std::make_shared<const ScalarContent>(shared_from_this(), std::move(cell), is_complex);
  return scalar;
}

std::shared_ptr<VectorSpace> VectorSpace::common(const Vector& x, const Vector& y) {
  const std::shared_ptr<VectorSpace>& space = content(x).space;
  if (content(y).space != space)
    fail(Errc::invalid_argument,
         fmt::format("vectors of {} and {} rows belong to two matrices{}; expected vectors of one",
                     x.rows(), y.rows(),
                     &space->solver_->engine() == &content(y).space->solver_->engine()
                         ? ""
                         : " on two engines"));
  return space;
}

void VectorSpace::check(const Scalar& factor) const {
  require(!factor.content_ || factor.content_->space.get() == this,
          "a scalar of another matrix; expected one of the vector's, or a number");
  require(is_complex() || !factor.is_complex(),
          "a complex scalar times a real vector; expected a real one, as real(scalar)");
}

void VectorSpace::submit(const Codelet& codelet, std::size_t part,
                         std::span<const Operand> operands, std::span<const std::byte> params) {
  SubmitOptions options;
  options.device = solver_->device(part);
  EngineAccess::submit(solver_->engine(), codelet, operands, params, options, &data_.group());
}

void VectorSpace::scalar_task(const Codelet& codelet, std::span<const Operand> operands,
                              std::span<const std::byte> params) {
  SubmitOptions options;
  if (solver_->parts() > 0) options.device = solver_->device(0);
  EngineAccess::submit(solver_->engine(), codelet, operands, params, options, &data_.group());
}

/// out = the sum of terms; of these, `target` has the memory that is written.
void VectorSpace::combine(const VectorTerms& terms, const VectorBuffer* target,
                          const std::vector<Data>& out) {
  std::vector<const VectorBuffer*> vectors;
  std::vector<const ScalarContent*> scalars;
  CombineParams params;
  for (const VectorTerm& each : terms) {
    Term& term = params.terms[params.count++];
    term.factor = as_value(each.factor);
    if (each.scalar) term.scalar = place_of(scalars, each.scalar.get());
    if (each.buffer.get() != target) term.vector = place_of(vectors, each.buffer.get());
  }
  params.vectors = static_cast<std::int32_t>(vectors.size());
  const Codelet& codelet = codelets_.combine(target, vectors.size(), scalars.size());
  std::vector<Operand> operands;
  for (std::size_t part = 0; part < solver_->parts(); ++part) {
    operands.assign({{out[part], target ? Access::update : Access::write}});
    for (const VectorBuffer* each : vectors) operands.push_back({each->parts()[part]});
    for (const ScalarContent* each : scalars) operands.push_back({each->cell.data});
    submit(codelet, part, operands, bytes_of_params(params));
  }
}

/// The sum of terms: in the memory of one that nobody else has, if there is one. Whoever has
/// `leaving` beside the terms is about to let it go.
VectorSpace::BufferRef VectorSpace::computed(const VectorTerms& terms,
                                             const VectorBuffer* leaving) {
  if (is_settled(terms)) return terms[0].buffer;
  const auto is_free = [&](const VectorTerm& term) {
    const auto holders = std::ranges::count(terms, term.buffer, &VectorTerm::buffer);
    return term.buffer.use_count() == holders + (term.buffer.get() == leaving ? 1 : 0);
  };
  const auto target = std::ranges::find_if(terms, is_free);
  const BufferRef out = target == terms.end() ? new_buffer() : target->buffer;
  combine(terms, target == terms.end() ? nullptr : out.get(), out->parts());
  return out;
}

VectorSpace::BufferRef VectorSpace::settled(const Vector& x) {
  VectorTerms& terms = content(x).terms;
  if (!is_settled(terms)) terms = {{1, nullptr, computed(terms, nullptr)}};
  return terms[0].buffer;
}

Vector VectorSpace::sum(const Vector& x, double factor, const Vector& y) {
  const std::shared_ptr<VectorSpace> space = common(x, y);
  if (content(x).terms.size() + content(y).terms.size() > most_terms) {
    space->settled(x);
    space->settled(y);
  }
  auto both = std::make_shared<VectorContent>(content(x));
  for (const VectorTerm& each : content(y).terms)
    both->terms.push_back({factor * each.factor, each.scalar, each.buffer});
  return Vector(std::move(both));
}

Vector VectorSpace::scaled(const Scalar& factor, const Vector& x) {
  VectorSpace& space = *content(x).space;
  space.check(factor);
  if (content(x).terms.size() > 1) space.settled(x);
  auto result = std::make_shared<VectorContent>(content(x));
  VectorTerm& term = result->terms[0];
  if (!factor.content_) {
    // An infinite real factor has no imaginary part that is NaN.
    const bool is_real = term.factor.imag() == 0 && factor.constant_.imag() == 0;
    term.factor =
        is_real ? term.factor.real() * factor.constant_.real() : term.factor * factor.constant_;
  } else {
    Scalar before;
    before.content_ = term.scalar;
    term.scalar =
        term.scalar ? compute(ScalarOperation::multiply, factor, before).content_ : factor.content_;
  }
  return Vector(std::move(result));
}

void VectorSpace::add(Vector& x, double factor, const Vector& y) {
  const std::shared_ptr<VectorSpace> space = common(x, y);
  if (content(y).terms.size() >= most_terms) space->settled(y);
  space->settled(x);
  VectorTerms terms = content(x).terms;
  for (const VectorTerm& each : content(y).terms)
    terms.push_back({factor * each.factor, each.scalar, each.buffer});
  const bool is_alone = x.content_.use_count() == 1;
  x = space->vector_of(space->computed(terms, is_alone ? terms[0].buffer.get() : nullptr));
}

void VectorSpace::scale(Vector& x, const Scalar& factor) {
  const std::shared_ptr<VectorSpace> space = content(x).space;
  space->settled(x);
  const bool is_alone = x.content_.use_count() == 1;
  const Vector product = scaled(factor, x);
  const VectorTerms& terms = content(product).terms;
  x = space->vector_of(space->computed(terms, is_alone ? terms[0].buffer.get() : nullptr));
}

void VectorSpace::copy(const std::vector<Data>& from, const std::vector<Data>& to) {
  CombineParams params;
  params.count = params.vectors = 1;
  params.terms[0].vector = 0;
  for (std::size_t part = 0; part < solver_->parts(); ++part) {
    const Operand operands[] = {{to[part], Access::write}, {from[part]}};
    submit(codelets_.combine(false, 1, 0), part, operands, bytes_of_params(params));
  }
}

/// Work with memory of the host's that is lent for this call: after a failure nothing uses it.
template <class Copy>
void VectorSpace::with_host(Copy work) {
  try {
    work();
    data_.end_call();
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    EngineAccess::cancel(solver_->engine(), data_.group());
    data_.end_call();
    std::rethrow_exception(failure);
  }
}

Vector VectorSpace::from_host(const void* elements) {
  require(elements || rows() == 0,
          fmt::format("the elements of a vector are null; expected {} of them", rows()));
  const BufferRef buffer = new_buffer();
  with_host([&] {
    copy(data_.add_vector(elements), buffer->parts());
    data_.wait({});
  });
  return vector_of(buffer);
}

void VectorSpace::to_host(const Vector& x, void* out) {
  require(out || rows() == 0,
          fmt::format("the memory for a vector is null; expected that of {} elements", rows()));
  const EngineOptions& options = solver_->engine().options();
  require(!options.virtual_clock || options.compute,
          "an engine that doesn't compute knows no vectors");
  const BufferRef buffer = settled(x);
  with_host([&] {
    const std::vector<Data> home = data_.add_vector(out);
    copy(buffer->parts(), home);
    data_.wait(home);
  });
}

Vector VectorSpace::zeros() {
  const BufferRef buffer = new_buffer();
  combine({}, nullptr, buffer->parts());
  return vector_of(buffer);
}

Vector VectorSpace::product(const Vector& x) {
  if (content(x).space.get() != this)
    fail(Errc::invalid_argument,
         fmt::format("a vector of {} rows of another matrix; expected one that this matrix of {} "
                     "rows made",
                     x.rows(), rows()));
  const BufferRef from = settled(x);
  const BufferRef to = new_buffer();
  data_.load(from->parts());
  data_.apply(to->parts());
  return vector_of(to);
}

Vector VectorSpace::product_by_elements(const Vector& x, const Vector& y) {
  const BufferRef left = settled(x);
  const BufferRef right = settled(y);
  const BufferRef to = new_buffer();
  for (std::size_t part = 0; part < solver_->parts(); ++part) {
    const Operand operands[] = {
        {to->parts()[part], Access::write}, {left->parts()[part]}, {right->parts()[part]}};
    submit(codelets_.multiply(), part, operands, {});
  }
  return vector_of(to);
}

Scalar VectorSpace::dot(const Vector& x, const Vector& y) {
  const BufferRef left = settled(x);
  const BufferRef right = settled(y);
  ScalarCell cell = new_cell();
  std::vector<Operand> all{{cell.data, Access::write}};
  Scalar result = scalar_of(std::move(cell), is_complex());
  for (std::size_t part = 0; part < solver_->parts(); ++part) {
    const PartShape& shape = solver_->plan(part).shape;
    const BlockedRows rows{shape.rows, shape.block_rows, shape.blocks};
    const Operand operands[] = {
        {sums_[part], Access::write}, {left->parts()[part]}, {right->parts()[part]}};
    submit(codelets_.sum_blocks(), part, operands, bytes_of_params(rows));
    all.push_back({sums_[part]});
  }
  scalar_task(codelets_.total(), all, {});
  return result;
}

Scalar VectorSpace::compute(ScalarOperation operation, const Scalar& x, const Scalar& y) {
  const bool compares =
      operation == ScalarOperation::less || operation == ScalarOperation::less_equal;
  ScalarParams params;
  params.operation = operation;
  params.is_complex = x.is_complex() || y.is_complex();
  require(!(params.is_complex && (compares || operation == ScalarOperation::square_root)),
          "a complex scalar has no order and no square root here; expected a real one, as "
          "real(scalar) or abs(scalar)");
  params.left = as_value(x.constant_);
  params.right = as_value(y.constant_);
  params.has_left = x.content_ != nullptr;
  params.has_right = y.content_ != nullptr;
  if (!params.has_left && !params.has_right) {
    const ScalarValue value = value_of(params, params.left, params.right);
    return std::complex<double>(value.real, value.imag);
  }
  const std::shared_ptr<VectorSpace> space = (x.content_ ? x : y).content_->space;
  for (const Scalar* each : {&x, &y})
    require(!each->content_ || each->content_->space == space,
            "scalars of two matrices; expected scalars of one");
  ScalarCell cell = space->new_cell();
  std::vector<Operand> operands{{cell.data, Access::write}};
  const bool is_complex = params.is_complex && operation < ScalarOperation::less;
  Scalar result = space->scalar_of(std::move(cell), is_complex);
  for (const Scalar* each : {&x, &y})
    if (each->content_) operands.push_back({each->content_->cell.data});
  space->scalar_task(space->codelets_.scalar(operands.size() - 1), operands,
                     bytes_of_params(params));
  return result;
}

void VectorSpace::wait(const ScalarContent& scalar, double timeout) {
  Engine& engine = solver_->engine();
  require(!engine.options().virtual_clock || engine.options().compute,
          "an engine that doesn't compute knows no scalars");
  try {
    engine.wait(scalar.cell.data, timeout);
  } catch (const Error&) {
    if (const auto failure = EngineAccess::failure_of(engine, data_.group()))
      std::rethrow_exception(failure);
    throw;
  }
}

}  // namespace quadriga::sparse
