// The files of web/ and the chart library, as CMake embeds them (cmake/Embed.cmake).
#pragma once

#include <string_view>

namespace stratagem::report::assets {

extern const std::string_view
    page;  ///< with {{title}}, {{style}}, {{data}}, {{library}}, {{script}}
extern const std::string_view style;    ///< CSS
extern const std::string_view script;   ///< JavaScript: all of web/*.js, in order of their names
extern const std::string_view library;  ///< Chart.js

}  // namespace stratagem::report::assets
