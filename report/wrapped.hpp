// Long text in lines.
#pragma once

#include <string>

namespace stratagem::report {

/// `text` in lines of at most 120 columns, all but the first indented.
std::string wrapped(const std::string& text, std::size_t indent);

}  // namespace stratagem::report
