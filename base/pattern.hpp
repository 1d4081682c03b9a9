// Names by pattern, such as `layers.*.mlp.fc1`: scenarios list operators and parameters so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// Does a whole name match? `*` stands for any text, also for none; all else for itself.
bool matches(std::string_view name, std::string_view pattern);

/// For an error about a pattern that fits no name: ` (did you mean "layers.*.mlp.fc1"?)`, or
/// `, such as "layers.*.mlp.fc1"` with a few of the patterns that fit.
std::string fitting_patterns(std::string_view pattern, const std::vector<std::string>& names);

}  // namespace stratagem
