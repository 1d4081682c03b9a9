// Escapes text for HTML.
#include "base/html_text.hpp"

namespace stratagem {

std::string html_text(std::string_view text) {
  std::string result;
  for (const char one : text) {
    switch (one) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += one;
    }
  }
  return result;
}

}  // namespace stratagem
