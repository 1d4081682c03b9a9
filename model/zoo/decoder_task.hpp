// What a decoder is to do: predict words, values or rewards, and generate with KV caches.
#pragma once

#include <cstdint>
#include <string>

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

struct DecoderTask {
  Predicts predicts = Predicts::words;
  std::int64_t answers = 2;  ///< with rewards: samples side by side that answer one prompt
  Cache cache = {};          ///< without one, whole sequences are processed
  friend bool operator==(const DecoderTask&, const DecoderTask&) = default;
};

/// A family's options, with those of its task, which lies in its `variant`.
template <typename Config>
OptionList<Config> with_task(OptionList<Config> options) {
  const auto of_task = [](auto DecoderTask::*member) {
    return [member](Config & c) -> auto& { return c.variant.task.*member; };
  };
  options.push_back({"head", of_task(&DecoderTask::predicts),
                     choice<Predicts>({{"words", Predicts::words},
                                       {"values", Predicts::values},
                                       {"reward", Predicts::reward}}),
                     "words: the next token; values: one number per token (a critic); reward: one "
                     "number per sample, read at its last token. `tied` and `loss` apply to words "
                     "only"});
  options.push_back({"answers", of_task(&DecoderTask::answers), whole(2, 1000),
                     "with `head` reward: so many consecutive samples answer one prompt, and the "
                     "loss compares every pair of them; divides `micro_batch`"});
  options.push_back(
      {"cache", of_task(&DecoderTask::cache),
       object_of<Cache>({{"room", &Cache::room, whole(1, 10'000'000),
                          "tokens of a sample for which the KV cache has room", must_be_there},
                         {"tokens", &Cache::tokens, whole(0, 10'000'000),
                          "of these, those in the cache before the `sequence`"}}),
       "keys and values of all tokens are kept (KV cache): `sequence` 1 is a decode "
       "step, `tokens` 0 prefill; the head predicts one token (with fused attention "
       "and the optimizer none)",
       "none"});
  return options;
}

/// Refuses what has no place beside a cache, more tokens than it has room for, and answers without
/// rewards.
template <typename Config>
void check_task(const JsonReader& config, const Config& c, bool fused_attention) {
  const DecoderTask& task = c.variant.task;
  if (config.has("answers") && task.predicts != Predicts::reward)
    config.at("answers").fail("\"head\": \"reward\" beside it");
  if (task.predicts != Predicts::words && config.has("cache"))
    config.at("cache").fail("\"head\": \"words\" beside it");
  if (task.predicts == Predicts::reward && c.batch % task.answers != 0)
    config.at("answers").fail("a divisor of the " + std::to_string(c.batch) +
                              " samples of a micro-batch");
  const auto cache = config.find("cache");
  if (!cache) return;
  if (!fused_attention) cache->fail("\"attention\": \"fused\" beside it");
  for (const char* key : {"window", "sinks", "documents", "experts", "latent", "prefix"})
    if (config.has(key)) config.at(key).fail("no \"" + std::string(key) + "\" beside \"cache\"");
  if (task.cache.tokens + c.sequence > task.cache.room)
    cache->at("room").fail("room for " + std::to_string(task.cache.tokens + c.sequence) +
                           " tokens, those of the cache and of the sequence");
}

}  // namespace stratagem::model
