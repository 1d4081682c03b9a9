// Counts bytes, and cuts only between characters.
#include "base/shortened.hpp"

namespace stratagem {

std::string shortened(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (end > 0 && continues(end)) --end;
  return text.substr(0, end) + "... (" + std::to_string(text.size() - end) + " more bytes)";
}

}  // namespace stratagem
