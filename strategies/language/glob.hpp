// `layers.[0-3].mlp.{fc1,fc2}`: patterns of dotted names in plan files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stratagem::strategies {

/// `*` is any text without a dot, `**` in place of a part any number of parts (none too), `[2-11]`
/// a number of that range, `{a,b}` either of the texts, which may be patterns themselves.
class Glob {
 public:
  /// Throws InputError at `path` for what is not of this form.
  Glob(const std::string& text, const std::string& path);

  [[nodiscard]] bool matches(std::string_view name) const;

 private:
  std::vector<std::vector<std::string>> patterns_;  ///< parts of each choice of alternatives
};

}  // namespace stratagem::strategies
