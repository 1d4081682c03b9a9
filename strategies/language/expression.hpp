// Whole-number arithmetic and conditions over names, as the plan language writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stratagem::strategies {

/// What an expression is compiled to: steps of a machine with a stack. Negation is a subtraction
/// from 0, a logical not a comparison with 0.
enum class Calculation : std::uint8_t {
  constant,  ///< pushes the operand
  name,      ///< pushes the value of names()[operand]
  both,      ///< of &&: goes on to the right side if the left one holds, else to step `operand`
  either,    ///< of ||: goes on to the right side if the left one does not hold, else likewise
  add,
  subtract,
  multiply,
  divide,     ///< towards minus infinity
  remainder,  ///< of that division: it has the divisor's sign
  equal,
  not_equal,
  less,
  at_most,
  greater,
  at_least,
  minimum,
  maximum,
};

/// a operation b for operations that take two values; nullopt if b is a divisor of 0 or the result
/// needs more than 64 bits.
std::optional<std::int64_t> apply(Calculation operation, std::int64_t a, std::int64_t b);

struct Instruction {
  Calculation operation = Calculation::constant;
  std::int64_t operand = 0;
  int column = 0;  ///< in the text, from 1: for messages
};

/// Grammar, tightest first: numbers, names, (x), min(x, y), max(x, y); -x, !x; * / %; + -;
/// == != < <= > >=, which do not chain; &&; ||. Conditions are 1 or 0; any number but 0 holds.
/// && and || leave their right side alone where the left one decides.
class Expression {
 public:
  /// Throws InputError at `path`, telling the text and the column, for what is not of the grammar.
  Expression(std::string text, std::string path);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// The names in it, each once, in the order in which they first appear.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<Instruction>& code() const { return code_; }
  /// Is it nothing but a name?
  [[nodiscard]] bool is_bare_name() const;

  /// From now on the value of a name stands at the place that the name has in `known`. Throws
  /// InputError for a name that is not there. Before, names()[i] stands at place i.
  void bind(const std::vector<std::string>& known);
  /// By names(): where values stand.
  [[nodiscard]] const std::vector<int>& places() const { return places_; }

  /// Throws InputError for a division by 0 and for results that need more than 64 bits.
  [[nodiscard]] std::int64_t evaluate(std::span<const std::int64_t> values) const;

  /// The same steps on the same places.
  friend bool operator==(const Expression& a, const Expression& b);

 private:
  [[noreturn]] void refuse(const Instruction& step, std::int64_t divisor,
                           std::span<const std::int64_t> values) const;

  std::string text_;
  std::string path_;
  std::vector<std::string> names_;
  std::vector<int> places_;
  std::vector<Instruction> code_;
};

/// Is it one word of letters, digits and _ that does not begin with a digit?
bool is_name(const std::string& text);

}  // namespace stratagem::strategies
