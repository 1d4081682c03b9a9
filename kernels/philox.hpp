// Random numbers by position, not by order: whoever computes element i draws the same number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stratagem::kernels {

/// Philox4x32-10: four words of random bits from a counter and a key. Source: Salmon et al.,
/// Parallel random numbers: as easy as 1, 2, 3, SC 2011.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_1 = multiplier_1 * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key[0] += weyl_0;
    key[1] += weyl_1;
  }
  return counter;
}

/// A stream of random numbers: `seed` is the run's, `stream` names what draws (a tensor of a
/// micro-batch of an iteration).
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

/// Numbers 4 * block to 4 * block + 3 of a stream, uniform in [0, 1): the upper 24 bits of each
/// word.
constexpr std::array<float, 4> uniform_block(const RandomStream& random, std::uint64_t block) {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
  const auto words = philox({low(block), high(block), low(random.stream), high(random.stream)},
                            {low(random.seed), high(random.seed)});
  std::array<float, 4> numbers{};
  for (std::size_t i = 0; i < 4; ++i) numbers[i] = static_cast<float>(words[i] >> 8) * 0x1p-24F;
  return numbers;
}

/// Number `index` of a stream.
constexpr float uniform(const RandomStream& random, std::uint64_t index) {
  return uniform_block(random, index / 4)[index % 4];
}

}  // namespace stratagem::kernels
