// Precedence climbing: a binary operator takes what binds tighter as its right side.
#include "strategies/language/parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/characters.hpp"

namespace stratagem::strategies {
namespace {

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

class Parser {
 public:
  Parser(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  Parsed parse() {
    binary(1);
    if (!at_end()) fail("an operator or the end");
    return std::move(parsed_);
  }

 private:
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

Parsed parse_expression(const std::string& text, const std::string& path) {
  return Parser(text, path).parse();
}

std::string at_column(int column, const std::string& text) {
  return " at column " + std::to_string(column) + " of \"" + text + "\"";
}

bool is_name(const std::string& text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace stratagem::strategies
