// Wraps text at blanks.
#include "report/wrapped.hpp"

#include <algorithm>

namespace stratagem::report {

std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t width = 120;
  std::string lines;
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line = std::string(indent - 1, ' ');
    }
    line += (begin == 0 ? "" : " ") + word;
    begin = end + 1;
  }
  return lines + line + "\n";
}

}  // namespace stratagem::report
