// Signatures of lists of numbers, by which equal lists are found without keeping them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stratagem::sim {

/// Spreads every bit of a number over all of the result: the end of SplitMix64 (Steele, Lea and
/// Flood, OOPSLA 2014).
constexpr std::uint64_t spread(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// 128 bits of a list. Equal lists have equal signatures. Among n different ones some two have an
/// equal one with a chance of about n^2 / 2^129: 10^-27 for a million.
struct Signature {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Signature&, const Signature&) = default;

  /// Order counts.
  void append(std::uint64_t number) {
    high = spread(high ^ spread(number));
    low = spread(low + spread(number ^ 0x5851f42d4c957f2d));
  }
  void append(const Signature& other) {
    append(other.high);
    append(other.low);
  }
  /// Order does not count. Not for a signature that anything is appended to.
  void include(std::uint64_t number) {
    high += spread(number);
    low += spread(number ^ 0x5851f42d4c957f2d);
  }
};

/// Numbers signatures by their first appearance.
inline std::vector<int> number(const std::vector<Signature>& signatures) {
  const auto hash = [](const Signature& signature) { return signature.low; };
  std::unordered_map<Signature, int, decltype(hash)> known(16, hash);
  std::vector<int> numbers;
  numbers.reserve(signatures.size());
  for (const Signature& signature : signatures)
    numbers.push_back(known.emplace(signature, static_cast<int>(known.size())).first->second);
  return numbers;
}

}  // namespace stratagem::sim
