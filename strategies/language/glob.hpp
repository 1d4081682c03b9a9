// "layers.[0-3].mlp.{fc1,fc2}": patterns of dotted names.
#pragma once

#include <cstddef>
#include <cstdint>
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
  /// A piece of a part: literal text, `*`, or a range of numbers.
  struct Piece {
    enum class Kind : std::uint8_t { text, any, range };
    Kind kind = Kind::text;
    std::string text;
    std::int64_t least = 0;
    std::int64_t most = 0;
  };
  /// No pieces: `**`.
  using Part = std::vector<Piece>;
  using Pattern = std::vector<Part>;

  static bool part_matches(const Part& part, std::size_t piece, std::string_view text);
  static bool pattern_matches(const Pattern& pattern, std::size_t part,
                              const std::vector<std::string_view>& names, std::size_t name);
  static Part parse_part(const std::string& text, const std::string& whole,
                         const std::string& path);
  static Piece parse_range(const std::string& text, std::size_t& at, const std::string& whole,
                           const std::string& path);

  std::vector<Pattern> patterns_;  ///< one for each choice of alternatives
};

/// Splits at `separator` where it is neither in {} nor in (); "" has one piece.
std::vector<std::string> split_outside_brackets(const std::string& text, char separator);

}  // namespace stratagem::strategies
