// Names by pattern, such as `layers.*.mlp.fc1`: scenarios list operators and parameters so.
#pragma once

#include <string_view>

namespace stratagem {

/// Does a whole name match? `*` stands for any text, also for none; all else for itself.
bool matches(std::string_view name, std::string_view pattern);

}  // namespace stratagem
