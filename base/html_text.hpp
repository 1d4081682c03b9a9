// Text in HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// With "&", "<", ">" and quotes as references: it means itself between tags and in attributes.
std::string html_text(std::string_view text);

}  // namespace stratagem
