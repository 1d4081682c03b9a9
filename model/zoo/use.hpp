// What a decoder is used for: to predict words, values or rewards, and to generate with caches.
#pragma once

#include <cstdint>

#include "base/json_reader.hpp"
#include "base/options.hpp"
#include "model/zoo/fused_attention.hpp"

namespace stratagem::model {

/// What the head of a decoder predicts.
enum class Predicts : std::uint8_t {
  words,   ///< of every token the next one
  values,  ///< of every token a number: a critic
  reward   ///< of every sample a number, at its last token
};

struct Use {
  Predicts predicts = Predicts::words;
  std::int64_t answers = 2;  ///< with rewards: samples side by side that answer one prompt
  Cache cache = {};          ///< without one, whole sequences are processed
  friend bool operator==(const Use&, const Use&) = default;
};

/// A family's options, with those of its use, which lies in its `variant`.
template <typename Config>
OptionList<Config> with_use(OptionList<Config> options) {
  const auto of_use = [](auto Use::*member) {
    return [member](Config & c) -> auto& { return c.variant.use.*member; };
  };
  options.push_back({"head", of_use(&Use::predicts),
                     choice<Predicts>({{"words", Predicts::words},
                                       {"values", Predicts::values},
                                       {"reward", Predicts::reward}}),
                     "what it predicts: of every token the next one, or a number (a critic); or of "
                     "every sample a number at its last token (a reward model). `tied` and `loss` "
                     "are of words"});
  options.push_back(
      {"answers", of_use(&Use::answers), whole(2, 1000),
       "with `head` reward: samples of a micro-batch that answer one prompt, of which "
       "the loss compares every pair"});
  options.push_back(
      {"cache", of_use(&Use::cache),
       object_of<Cache>({{"room", &Cache::room, whole(1, 10'000'000),
                          "tokens of a sample for which there is room", must_be_there},
                         {"tokens", &Cache::tokens, whole(0, 10'000'000),
                          "of these, those before the `sequence`"}}),
       "keys and values are kept: the `sequence` follows tokens that were processed "
       "before, and the head predicts one word (with fused attention and the "
       "optimizer none)",
       "none"});
  return options;
}

/// Refuses what has no place beside a cache, more tokens than it has room for, and answers without
/// rewards.
template <typename Config>
void check_use(const JsonReader& config, const Config& c, bool fused_attention) {
  const Use& use = c.variant.use;
  if (config.has("answers") && use.predicts != Predicts::reward)
    config.at("answers").fail("\"head\": \"reward\" beside it");
  if (use.predicts != Predicts::words && config.has("cache"))
    config.at("cache").fail("\"head\": \"words\" beside it");
  if (use.predicts == Predicts::reward && c.batch % use.answers != 0)
    config.at("answers").fail("a divisor of the " + std::to_string(c.batch) +
                              " samples of a micro-batch");
  const auto cache = config.find("cache");
  if (!cache) return;
  if (!fused_attention) cache->fail("\"attention\": \"fused\" beside it");
  for (const char* key : {"window", "sinks", "experts", "latent", "prefix"})
    if (config.has(key)) config.at(key).fail("nothing, beside \"cache\"");
  if (use.cache.tokens + c.sequence > use.cache.room)
    cache->at("room").fail("room for " + std::to_string(use.cache.tokens + c.sequence) +
                           " tokens, those of the cache and of the sequence");
}

}  // namespace stratagem::model
