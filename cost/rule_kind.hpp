// A kind of rule: how it is written in a stack file, and what it acts on.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "cost/rules.hpp"

namespace stratagem::cost {

/// What rules of a kind say.
struct RuleText {
  std::string sentence;
  std::string time;    ///< what they change of times; empty: nothing
  std::string memory;  ///< and of memory
  /// How many of the first keys say what a rule is about. A stack has one rule about one thing.
  std::size_t about = 1;
};

/// How a kind of rule is written.
struct RuleKind : RuleText {
  std::vector<OptionText> keys;  ///< the first gives the kind its name
  std::function<Rule(const JsonReader&)> read;

  [[nodiscard]] const std::string& name() const { return keys.front().key; }
};

}  // namespace stratagem::cost
