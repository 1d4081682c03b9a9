// Compiles expressions to steps over a small stack, and evaluates them, checked for overflow.
#include "strategies/language/expression.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/nearest.hpp"
#include "strategies/language/characters.hpp"

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

/// Values that may wait on the stack of an expression.
constexpr std::size_t deepest_stack = 64;

/// ` at column 3 of "i + * 2"`, the end of what an error expects.
std::string at_column(int column, const std::string& text) {
  return " at column " + std::to_string(column) + " of \"" + text + "\"";
}

struct Parsed {
  std::vector<Instruction> code;
  std::vector<std::string> names;  ///< in the order in which they first appear
};

struct BinaryOperator {
  std::string_view text;
  int precedence;
  Calculation operation;
};

constexpr int comparison = 3;

/// Where one text begins with another, the longer stands first.
constexpr std::array<BinaryOperator, 13> binary_operators = {{
    {"||", 1, Calculation::either},
    {"&&", 2, Calculation::both},
    {"==", comparison, Calculation::equal},
    {"!=", comparison, Calculation::not_equal},
    {"<=", comparison, Calculation::at_most},
    {">=", comparison, Calculation::at_least},
    {"<", comparison, Calculation::less},
    {">", comparison, Calculation::greater},
    {"+", 4, Calculation::add},
    {"-", 4, Calculation::subtract},
    {"*", 5, Calculation::multiply},
    {"/", 5, Calculation::divide},
    {"%", 5, Calculation::remainder},
}};

/// From the text to the steps, by precedence climbing: a binary operator takes what binds tighter
/// as its right side.
class Parser {
 public:
  Parser(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  Parsed parse() {
    binary(1);
    if (!at_end()) fail(meant_here() + "an operator or the end");
    return std::move(parsed_);
  }

 private:
  /// `"==", ` where another language's word for it stands here.
  std::string meant_here() {
    const std::string name = word();
    const std::string written = name.empty() ? text_.substr(position_, 1) : name;
    return written == "="     ? "\"==\", "
           : written == "and" ? "\"&&\", "
           : written == "or"  ? "\"||\", "
                              : "";
  }

  /// Operators of at least this precedence, and all that stands between them.
  void binary(int least) {
    unary();
    bool compared = false;
    for (const BinaryOperator* word = next_operator(); word != nullptr && word->precedence >= least;
         word = next_operator()) {
      // 0 <= m < M would compare 0 or 1 with M.
      if (compared && word->precedence == comparison) fail("\"&&\" between two comparisons");
      compared = word->precedence == comparison;
      const int column = here();
      position_ += word->text.size();
      if (word->operation == Calculation::both || word->operation == Calculation::either) {
        lazy(*word, column);
      } else {
        binary(word->precedence + 1);
        emit(word->operation, 0, column);
      }
    }
  }

  /// The right side of && and ||, skipped where the left one decides; a result of 0 or 1.
  void lazy(const BinaryOperator& word, int column) {
    const std::size_t jump = parsed_.code.size();
    emit(word.operation, 0, column);
    binary(word.precedence + 1);
    emit(Calculation::constant, 0, column);
    emit(Calculation::not_equal, 0, column);
    parsed_.code[jump].operand = static_cast<std::int64_t>(parsed_.code.size());
  }

  void unary() {
    constexpr int deepest = 100;  // keeps the recursion within the machine's stack
    if (++nesting_ > deepest) fail("at most " + std::to_string(deepest) + " levels of nesting");
    const int column = here();
    if (accept('-')) {
      emit(Calculation::constant, 0, column);
      unary();
      emit(Calculation::subtract, 0, column);
    } else if (accept('!')) {
      unary();
      emit(Calculation::constant, 0, column);
      emit(Calculation::equal, 0, column);
    } else {
      primary();
    }
    --nesting_;
  }

  void primary() {
    const int column = here();
    if (accept('(')) {
      binary(1);
      require(')');
    } else if (!at_end() && is_digit(text_[position_])) {
      emit(Calculation::constant, number(), column);
    } else if (!at_end() && is_letter(text_[position_])) {
      name_or_call(column);
    } else {
      fail("a number, a name or \"(\"");
    }
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number below 2^63");
    position_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  void name_or_call(int column) {
    const std::string name = word();
    position_ += name.size();
    if (name != "min" && name != "max") {
      const auto known = std::ranges::find(parsed_.names, name);
      emit(Calculation::name, known - parsed_.names.begin(), column);
      if (known == parsed_.names.end()) parsed_.names.push_back(name);
      return;
    }
    require('(');
    binary(1);
    require(',');
    binary(1);
    require(')');
    emit(name == "min" ? Calculation::minimum : Calculation::maximum, 0, column);
  }

  void emit(Calculation operation, std::int64_t operand, int column) {
    const bool pushes = operation == Calculation::constant || operation == Calculation::name;
    waiting_ += pushes ? 1 : -1;  // && and || drop their left side, other operators make one of two
    if (waiting_ > static_cast<int>(deepest_stack))
      fail("at most " + std::to_string(deepest_stack) + " values at a time");
    parsed_.code.push_back({.operation = operation, .operand = operand, .column = column});
  }

  [[nodiscard]] std::string word() const {
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(position_);
    return {begin,
            std::find_if(begin, text_.end(), [](char c) { return !is_letter(c) && !is_digit(c); })};
  }

  const BinaryOperator* next_operator() {
    if (at_end()) return nullptr;
    const auto found = std::ranges::find_if(binary_operators, [&](const BinaryOperator& word) {
      return std::string_view(text_).substr(position_).starts_with(word.text);
    });
    return found == binary_operators.end() ? nullptr : &*found;
  }

  bool accept(char wanted) {
    if (at_end() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }
  void require(char wanted) {
    if (!accept(wanted)) fail(std::string("\"") + wanted + "\"");
  }

  bool at_end() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t'))
      ++position_;
    return position_ == text_.size();
  }
  /// The column of the next thing, from 1.
  int here() {
    at_end();
    return static_cast<int>(position_) + 1;
  }

  [[noreturn]] void fail(const std::string& expected) {
    const int column = here();
    std::string found = "the end";
    if (!at_end()) {
      const std::string whole = word();
      found = "\"" + (whole.empty() ? text_.substr(position_, 1) : whole) + "\"";
    }
    throw InputError("", path_, expected + at_column(column, text_), found);
  }

  const std::string& text_;
  const std::string& path_;
  std::size_t position_ = 0;
  int nesting_ = 0;
  int waiting_ = 0;
  Parsed parsed_;
};

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
  Parsed parsed = Parser(text_, path_).parse();
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
      throw InputError("", path_,
                       fmt::format("one of the names {}{}{}", fmt::join(known, ", "),
                                   at_column(step->column, text_), did_you_mean(names_[i], known)),
                       "\"" + names_[i] + "\"");
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

bool is_name(const std::string& text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

bool operator==(const Expression& a, const Expression& b) {
  return a.places_ == b.places_ &&
         std::ranges::equal(a.code_, b.code_, [](const Instruction& x, const Instruction& y) {
           return x.operation == y.operation && x.operand == y.operand;
         });
}

}  // namespace stratagem::strategies
