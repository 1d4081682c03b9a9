// A page of the reference that a test writes and compares: tables of what runs, and refusals.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace stratagem::execute {

/// Refusals by number, as they first come.
class Refusals {
 public:
  /// "runs" where nothing is refused, or the number of the refusal.
  std::string cell(const std::string& why) {
    if (why.empty()) return "runs";
    const auto found = std::ranges::find(all_, why);
    const auto number = found - all_.begin();
    if (found == all_.end()) all_.push_back(why);
    return std::to_string(number + 1);
  }
  void append_to(std::ostringstream& text) const {
    text << "\n## Refusals\n\n";
    for (std::size_t i = 0; i < all_.size(); ++i) text << i + 1 << ". `" << all_[i] << "`\n";
  }

 private:
  std::vector<std::string> all_;
};

/// Fails unless docs/reference has this page; then writes it as it should be beside.
inline void check_page(const std::string& name, const std::string& made) {
  std::ifstream file("docs/reference/" + name);
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  const std::filesystem::path fresh = std::filesystem::temp_directory_path() / name;
  if (made != written) std::ofstream(fresh) << made;
  INFO("the page as it should be: " << fresh.string());
  CHECK(made == written);
}

}  // namespace stratagem::execute
