// Compares fixed numbers of bytes, so that ranks with different arguments can still be compared.
#include "commands/ranks/rank_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "base/input_error.hpp"
#include "calibrate/measure/ranks.hpp"

namespace stratagem::commands {
namespace {

/// FNV-1a: to tell what is different by mistake, not by malice.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  return hash;
}

/// The text itself where it is short.
struct Told {
  std::array<char, 200> text{};
  std::uint64_t hash = 0;
};

Told told(const std::string& text) {
  Told result{.text = {}, .hash = hash_of(text)};
  const std::string shown = text.size() < result.text.size() && text.find('\n') == std::string::npos
                                ? text
                                : fmt::format("one with hash {:016x}", result.hash);
  std::memcpy(result.text.data(), shown.data(), shown.size());
  return result;
}

}  // namespace

void expect_alike(kernels::Communicator& ranks, const std::string& what, const std::string& text) {
  const Told mine = told(text);
  std::vector<Told> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const auto other =
      std::ranges::find_if(all, [&](const Told& one) { return one.hash != all.front().hash; });
  if (other == all.end()) return;
  if (ranks.rank() != 0) throw calibrate::AnotherRankFailed{};
  throw InputError("", "rank " + std::to_string(other - all.begin()),
                   what + " of rank 0, " + all.front().text.data(), other->text.data());
}

void all_or_none(kernels::Communicator& ranks, const std::function<void()>& step) {
  std::exception_ptr error;
  try {
    step();
  } catch (...) {
    error = std::current_exception();
  }
  const std::array<double, 1> mine = {error ? 1.0 : 0.0};
  std::vector<double> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::span<const double>(mine), std::span<double>(all));
  const auto first = std::ranges::find(all, 1.0);
  if (first == all.end()) return;
  if (first - all.begin() != ranks.rank()) throw calibrate::AnotherRankFailed{};
  std::rethrow_exception(error);
}

}  // namespace stratagem::commands
