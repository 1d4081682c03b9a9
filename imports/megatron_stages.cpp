// Deals layers out to ranks, then to the chunks of each.
#include "imports/megatron_stages.hpp"

#include <algorithm>
#include <vector>

namespace stratagem::imports {

void read_uneven_stages(Said& words, int ranks, int chunks, int layers, Settings& settings) {
  const auto first = words.number("decoder-first-pipeline-num-layers");
  const auto last = words.number("decoder-last-pipeline-num-layers");
  const int embedding = words.flag("account-for-embedding-in-pipeline-split") ? 1 : 0;
  const int loss = words.flag("account-for-loss-in-pipeline-split") ? 1 : 0;
  if (!first && !last && embedding + loss == 0) return;
  const int others = ranks - (first ? 1 : 0) - (last ? 1 : 0);
  const int rest = layers + embedding + loss - first.value_or(0) - last.value_or(0);
  std::vector<int> of_rank(ranks, others > 0 ? rest / others : 0);
  if (first) of_rank.front() = *first;
  if (last) of_rank.back() = *last;
  const bool even = std::ranges::all_of(of_rank, [&](int one) { return one % chunks == 0; });
  if (rest < 0 || rest != others * (others > 0 ? rest / others : 0) || !even)
    return settings.left_out.push_back(
        {"--decoder-*-pipeline-num-layers", "the layers do not come out even"});
  Json stages = Json::array();
  for (int stage = 0; stage < ranks * chunks; ++stage) {
    const int ends = (stage == 0 ? embedding : 0) + (stage == ranks * chunks - 1 ? loss : 0);
    stages.push(of_rank[stage % ranks] / chunks - ends);
  }
  settings.strategy.set("layers_per_stage", stages);
}

}  // namespace stratagem::imports
