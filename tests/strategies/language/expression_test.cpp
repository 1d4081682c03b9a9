// Expressions of the plan language: against literal values and against randomly grown trees.
#include "strategies/language/expression.hpp"

#include <cmath>
#include <memory>
#include <random>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::strategies::expression_test {

namespace {

std::int64_t value(const std::string& text) { return Expression(text, "/x").evaluate({}); }

/// The one line that the text is refused with, "" if it is not.
std::string refusal(const std::string& text) {
  try {
    return std::to_string(Expression(text, "/x").evaluate(std::vector<std::int64_t>{4, 0}));
  } catch (const InputError& error) {
    return error.what();
  }
}

struct DivisionByZero {};

/// A tree that evaluates itself in floating point, exact below 2^53, and prints itself with all
/// parentheses.
struct Tree {
  std::string word;  ///< an operator, a number or a name
  std::unique_ptr<Tree> left;
  std::unique_ptr<Tree> right;  ///< null for unary operators

  [[nodiscard]] std::string text() const {
    if (!left) return word;
    if (!right) return "(" + word + left->text() + ")";
    if (word == "min" || word == "max")
      return word + "(" + left->text() + ", " + right->text() + ")";
    return "(" + left->text() + " " + word + " " + right->text() + ")";
  }

  [[nodiscard]] double evaluate(double i, double m) const {
    if (!left) return word == "i" ? i : word == "m" ? m : std::stod(word);
    const double a = left->evaluate(i, m);
    if (word == "&&") return a != 0 && right->evaluate(i, m) != 0 ? 1 : 0;
    if (word == "||") return a != 0 || right->evaluate(i, m) != 0 ? 1 : 0;
    if (!right) return word == "-" ? -a : a == 0 ? 1 : 0;
    return binary(a, right->evaluate(i, m));
  }

 private:
  [[nodiscard]] double binary(double a, double b) const {
    if (word == "+") return a + b;
    if (word == "-") return a - b;
    if (word == "*") return a * b;
    if (word == "min") return b < a ? b : a;
    if (word == "max") return b > a ? b : a;
    if (word == "==") return a == b ? 1 : 0;
    if (word == "!=") return a != b ? 1 : 0;
    if (word == "<") return a < b ? 1 : 0;
    if (word == "<=") return a <= b ? 1 : 0;
    if (word == ">") return a > b ? 1 : 0;
    if (word == ">=") return a >= b ? 1 : 0;
    if (b == 0) throw DivisionByZero();
    return word == "/" ? whole_quotient(a, b) : a - b * whole_quotient(a, b);
  }
  /// a / b may round up to a whole number that b times is more than a.
  static double whole_quotient(double a, double b) {
    double quotient = std::floor(a / b);
    while (b > 0 ? quotient * b > a : quotient * b < a) --quotient;
    while (b > 0 ? (quotient + 1) * b <= a : (quotient + 1) * b >= a) ++quotient;
    return quotient;
  }
};

/// At most 16 leaves of at most 9, so no product exceeds 9^16 < 2^53.
std::unique_ptr<Tree> grow(std::mt19937& random, int depth) {
  static const std::vector<std::string> binary = {
      "+", "-", "*", "/", "%", "min", "max", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
  auto tree = std::make_unique<Tree>();
  if (depth == 0 || random() % 8 == 0) {
    const std::vector<std::string> leaves = {"i", "m", std::to_string(random() % 10)};
    tree->word = leaves[random() % leaves.size()];
    return tree;
  }
  tree->left = grow(random, depth - 1);
  if (random() % 6 == 0) {
    tree->word = random() % 2 == 0 ? "-" : "!";
    return tree;
  }
  tree->word = binary[random() % binary.size()];
  tree->right = grow(random, depth - 1);
  return tree;
}

}  // namespace

TEST_CASE("operators bind as in C, but comparisons all alike") {
  CHECK(value("1 + 2 * 3") == 7);
  CHECK(value("(1 + 2) * 3") == 9);
  CHECK(value("10 - 3 - 2") == 5);
  CHECK(value("100 / 10 / 5") == 2);
  CHECK(value("-2 * -3") == 6);
  CHECK(value("2 - -3") == 5);
  CHECK(value("!0 + 1") == 2);
  CHECK(value("1 + 1 == 2 && 3 > 2") == 1);
  CHECK(value("1 || 0 && 0") == 1);
  CHECK(value("(1 || 0) && 0") == 0);
  CHECK(value("5 && 7") == 1);  // conditions are 1 or 0
  CHECK(value("max(1, min(2+3, 4)) * 2") == 8);
}

TEST_CASE(
    "division goes towards minus infinity, so remainders of positive divisors are not negative") {
  CHECK(value("7 / 2") == 3);
  CHECK(value("-7 / 2") == -4);
  CHECK(value("7 / -2") == -4);
  CHECK(value("-7 / -2") == 3);
  CHECK(value("-6 / 2") == -3);
  CHECK(value("7 % 3") == 1);
  CHECK(value("-7 % 3") == 2);
  CHECK(value("-6 % 3") == 0);
  CHECK(value("7 % -3") == -2);
}

TEST_CASE("the side of && and || that does not matter is not evaluated") {
  CHECK(value("0 && 1 / 0") == 0);
  CHECK(value("1 || 1 / 0") == 1);
  CHECK(refusal("1 && 1 / 0") != "1");
}

TEST_CASE("numbers may need 64 bits and no more") {
  CHECK(value("-9223372036854775807 - 1") == INT64_MIN);
  CHECK(value("(-9223372036854775807 - 1) % -1") == 0);
  const std::string most = "expected a result of at most 64 bits at column ";
  CHECK_THAT(refusal("9223372036854775807 + 1"), ContainsSubstring(most + "21"));
  CHECK_THAT(refusal("-9223372036854775807 - 2"), ContainsSubstring(most));
  CHECK_THAT(refusal("3037000500 * 3037000500"), ContainsSubstring(most));
  CHECK_THAT(refusal("(-9223372036854775807 - 1) / -1"), ContainsSubstring(most));
  CHECK_THAT(refusal("-(-9223372036854775807 - 1)"), ContainsSubstring(most));
  CHECK_THAT(refusal("9223372036854775808"), ContainsSubstring("a number below 2^63"));
}

TEST_CASE("what is no expression is refused with the place and what stands there") {
  CHECK(refusal("") == "/x: expected a number, a name or \"(\" at column 1 of \"\", found the end");
  CHECK(refusal("i + * 2") ==
        "/x: expected a number, a name or \"(\" at column 5 of \"i + * 2\", found \"*\"");
  CHECK(refusal("(1 + 2") == "/x: expected \")\" at column 7 of \"(1 + 2\", found the end");
  CHECK(refusal("2 micro") ==
        "/x: expected an operator or the end at column 3 of \"2 micro\", found \"micro\"");
  CHECK(refusal("i = 2") ==
        "/x: expected \"==\", an operator or the end at column 3 of \"i = 2\", found \"=\"");
  CHECK(refusal("i or 1") ==
        "/x: expected \"||\", an operator or the end at column 3 of \"i or 1\", found \"or\"");
  CHECK(refusal("i order") ==
        "/x: expected an operator or the end at column 3 of \"i order\", found \"order\"");
  CHECK(refusal("0 <= i < 4") ==
        "/x: expected \"&&\" between two comparisons at column 8 of \"0 <= i < 4\", found \"<\"");
  CHECK(refusal("min(1)") == "/x: expected \",\" at column 6 of \"min(1)\", found \")\"");
  CHECK(refusal("min + 1") == "/x: expected \"(\" at column 5 of \"min + 1\", found \"+\"");
  CHECK(refusal("i / m") ==
        "/x: expected a divisor other than 0 at column 3 of \"i / m\", found 0 where i = 4, m = 0");
  CHECK_THAT(refusal("1 % 0"), ContainsSubstring("a divisor other than 0"));
  CHECK_THAT(refusal(std::string(1000, '(') + "1" + std::string(1000, ')')),
             ContainsSubstring("at most 100 levels of nesting"));
  CHECK_THAT(refusal(std::string(1000, '!') + "1"), ContainsSubstring("levels of nesting"));
  std::string to_the_right = "1";
  for (int i = 0; i < 90; ++i) to_the_right = "(1 + " + to_the_right + ")";
  CHECK_THAT(refusal(to_the_right), ContainsSubstring("at most 64 values at a time"));
}

TEST_CASE("a bound expression reads its names where they stand, and knows no others") {
  Expression expression("S - 1 - stage", "/x");
  CHECK(expression.names() == std::vector<std::string>{"S", "stage"});
  CHECK(expression.evaluate(std::vector<std::int64_t>{8, 2}) == 5);
  expression.bind({"stage", "M", "S"});
  CHECK(expression.evaluate(std::vector<std::int64_t>{2, 100, 8}) == 5);
  try {
    expression.bind({"S", "stages"});
    FAIL("bound");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()) ==
          "/x: expected one of the names S, stages at column 9 of \"S - 1 - stage\" (did you mean "
          "\"stages\"?), found \"stage\"");
  }
}

TEST_CASE("random expressions are worth what the tree they were printed from is worth") {
  std::mt19937 random(1);
  int divided_by_zero = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto tree = grow(random, 4);
    const std::string text = tree->text();
    const auto i = static_cast<std::int64_t>(random() % 19) - 9;
    const auto m = static_cast<std::int64_t>(random() % 19) - 9;
    INFO(text << " with i = " << i << ", m = " << m);
    Expression expression(text, "/x");
    expression.bind({"i", "m"});
    const std::vector<std::int64_t> values = {i, m};
    try {
      const double expected = tree->evaluate(static_cast<double>(i), static_cast<double>(m));
      REQUIRE(static_cast<double>(expression.evaluate(values)) == expected);
    } catch (const DivisionByZero&) {
      ++divided_by_zero;
      REQUIRE_THROWS_AS(expression.evaluate(values), InputError);
    }
  }
  CHECK(divided_by_zero > 100);
}

}  // namespace stratagem::strategies::expression_test
