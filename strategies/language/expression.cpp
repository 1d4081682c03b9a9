// Evaluates compiled expressions: steps over a small stack, checked for overflow.
#include "strategies/language/expression.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "strategies/language/parser.hpp"

namespace stratagem::strategies {
namespace {

std::optional<std::int64_t> floor_divide(std::int64_t a, std::int64_t b) {
  // The one quotient that does not fit.
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
  const std::int64_t towards_zero = a / b;
  return towards_zero - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::optional<std::int64_t> floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;  // a % b traps where a / b does not fit
  const std::int64_t with_sign_of_a = a % b;
  const bool other_sign = with_sign_of_a != 0 && (with_sign_of_a < 0) != (b < 0);
  return other_sign ? with_sign_of_a + b : with_sign_of_a;
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::optional<std::int64_t> apply(Calculation operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (operation) {
    case Calculation::add:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Calculation::subtract:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Calculation::multiply:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Calculation::divide:
      return floor_divide(a, b);
    case Calculation::remainder:
      return floor_remainder(a, b);
    case Calculation::equal:
      return a == b ? 1 : 0;
    case Calculation::not_equal:
      return a != b ? 1 : 0;
    case Calculation::less:
      return a < b ? 1 : 0;
    case Calculation::at_most:
      return a <= b ? 1 : 0;
    case Calculation::greater:
      return a > b ? 1 : 0;
    case Calculation::at_least:
      return a >= b ? 1 : 0;
    case Calculation::minimum:
      return std::min(a, b);
    case Calculation::maximum:
      return std::max(a, b);
    case Calculation::constant:
    case Calculation::name:
    case Calculation::both:
    case Calculation::either:
      break;
  }
  throw BrokenPromise("apply is asked for operations that take two values");
}

Expression::Expression(std::string text, std::string path)
    : text_(std::move(text)), path_(std::move(path)) {
  Parsed parsed = parse_expression(text_, path_);
  code_ = std::move(parsed.code);
  names_ = std::move(parsed.names);
  places_.resize(names_.size());
  std::iota(places_.begin(), places_.end(), 0);
}

bool Expression::is_bare_name() const {
  return code_.size() == 1 && code_.front().operation == Calculation::name;
}

void Expression::bind(const std::vector<std::string>& known) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto place = std::ranges::find(known, names_[i]);
    if (place == known.end()) {
      const auto step = std::ranges::find_if(code_, [&](const Instruction& instruction) {
        return instruction.operation == Calculation::name &&
               instruction.operand == static_cast<std::int64_t>(i);
      });
      std::string expected = "one of the names " + list(known) + at_column(step->column, text_);
      if (const auto near = nearest(names_[i], known)) {
        expected += " (did you mean \"" + *near + "\"?)";
      }
      throw InputError("", path_, expected, "\"" + names_[i] + "\"");
    }
    places_[i] = static_cast<int>(place - known.begin());
  }
}

std::int64_t Expression::evaluate(std::span<const std::int64_t> values) const {
  std::array<std::int64_t, deepest_stack> stack{};
  std::size_t size = 0;
  for (std::size_t at = 0; at < code_.size(); ++at) {
    const Instruction& step = code_[at];
    if (step.operation == Calculation::constant) {
      stack[size++] = step.operand;
    } else if (step.operation == Calculation::name) {
      stack[size++] = values[places_[step.operand]];
    } else if (step.operation == Calculation::both || step.operation == Calculation::either) {
      const bool holds = stack[size - 1] != 0;
      if (holds == (step.operation == Calculation::either)) {
        stack[size - 1] = holds ? 1 : 0;
        at = static_cast<std::size_t>(step.operand) - 1;  // the loop adds 1
      } else {
        --size;
      }
    } else {
      const std::int64_t right = stack[--size];
      const auto result = apply(step.operation, stack[size - 1], right);
      if (!result) refuse(step, right, values);
      stack[size - 1] = *result;
    }
  }
  return stack[0];
}

void Expression::refuse(const Instruction& step, std::int64_t divisor,
                        std::span<const std::int64_t> values) const {
  const bool by_zero = divisor == 0 && (step.operation == Calculation::divide ||
                                        step.operation == Calculation::remainder);
  std::string found = by_zero ? "0" : "more";
  for (std::size_t i = 0; i < names_.size(); ++i) {
    found += (i == 0 ? " where " : ", ") + names_[i] + " = " + std::to_string(values[places_[i]]);
  }
  throw InputError("", path_,
                   (by_zero ? "a divisor other than 0" : "a result of at most 64 bits") +
                       at_column(step.column, text_),
                   found);
}

bool operator==(const Expression& a, const Expression& b) {
  return a.places_ == b.places_ &&
         std::ranges::equal(a.code_, b.code_, [](const Instruction& x, const Instruction& y) {
           return x.operation == y.operation && x.operand == y.operand;
         });
}

}  // namespace stratagem::strategies
