// Writes the tasks of a block anew, pairs of them piece by piece.
#include "lowering/blocks/pieces.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace stratagem::lowering {
namespace {

using program::Block;
using program::Collective;
using program::Stream;
using program::Task;

bool is_in(const std::vector<int>& list, int value) {
  return std::ranges::find(list, value) != list.end();
}

Task piece_of(const Task& whole, int number, int of) {
  Task piece = whole;
  piece.waits.clear();
  if (of > 1) piece.name += ", piece " + std::to_string(number) + " of " + std::to_string(of);
  if (number == of) return piece;
  piece.operations.clear();
  piece.synchronizations = 0;
  return piece;
}

/// One of equal pieces of a product, which streams compute beside each other.
cost::Kernel equal_piece(cost::Kernel kernel, int pieces) {
  kernel.flops = kernel.flops / pieces;
  kernel.traffic = kernel.traffic / pieces;
  kernel.piece.of = pieces;
  return kernel;
}

/// A product of some of the rows, alone on its stream. All of the weight is read for them.
cost::Kernel product_of_rows(cost::Kernel kernel, std::int64_t rows) {
  const auto real = [](std::int64_t size) { return static_cast<double>(size); };
  const double share = real(rows) / real(kernel.m);
  kernel.traffic -= real((kernel.m - rows) * (kernel.n + kernel.k)) * model::size_of(kernel.type);
  kernel.flops = share * kernel.flops;
  kernel.m = rows;
  return kernel;
}

class Cutting {
 public:
  Cutting(Block& block, const std::map<int, Cut>& cuts,
          const std::function<bool(int task)>& by_tokens)
      : block_(block), cuts_(cuts), by_tokens_(by_tokens) {}

  Moved run() {
    const auto count = static_cast<int>(block_.tasks.size());
    moved_ = {std::vector<int>(count, -1), std::vector<int>(count, -1), {}};
    for (int t = 0; t < count; ++t) {
      const Cut* gather = cut_at(t, t, t + 1);
      const Cut* scatter = cut_at(t + 1, t, t + 1);
      if (gather != nullptr && gather->way != Cut::Way::scatter && divides(t + 1, *gather)) {
        gather->way == Cut::Way::ring_exchange ? by_ring(t, gather->pieces)
                                               : own_first(t, gather->pieces);
        ++t;
      } else if (scatter != nullptr && scatter->way == Cut::Way::scatter && divides(t, *scatter)) {
        scattered(t, *scatter);
        ++t;
      } else {
        Task same = block_.tasks[t];
        same.waits = moved(same.waits);
        add(std::move(same), t);
      }
    }
    block_.tasks = std::move(tasks_);
    return std::move(moved_);
  }

 private:
  /// How a collective is cut, if the second of two tasks reads what the first writes.
  [[nodiscard]] const Cut* cut_at(int collective, int first, int second) const {
    const auto found = cuts_.find(collective);
    if (found == cuts_.end() || second >= static_cast<int>(block_.tasks.size())) return nullptr;
    const std::vector<int>& written = block_.tasks[first].writes;
    const bool passed_on = !written.empty() && is_in(block_.tasks[second].reads, written[0]);
    return passed_on ? &found->second : nullptr;
  }

  /// Is it a product with tokens for each piece?
  [[nodiscard]] bool divides(int task, const Cut& cut) const {
    const auto* kernel = std::get_if<cost::Kernel>(&block_.tasks[task].work);
    return kernel != nullptr && kernel->kind == cost::KernelKind::gemm && kernel->batch == 1 &&
           kernel->m >= cut.pieces && by_tokens_(task);
  }

  void by_ring(int t, int ranks) {
    const Task& gather = block_.tasks[t];
    const auto& whole = std::get<Collective>(gather.work);
    add_own_share(t, ranks, equal_piece(kernel_of(t + 1), ranks));
    for (int i = 1; i < ranks; ++i) {
      Task exchange = piece_of(gather, i, ranks - 1);
      exchange.work = Collective{.kind = cost::CollectiveKind::ring_exchange,
                                 .group = whole.group,
                                 .payload = whole.payload / ranks,
                                 .in_library = true};
      if (i == 1) exchange.waits = moved(gather.waits);
      const int arrived = add(std::move(exchange), t);
      add_after(arrived, t, i + 1, ranks, in_library(equal_piece(kernel_of(t + 1), ranks)));
    }
  }

  /// A further piece, which the library that cuts the product launches.
  static cost::Kernel in_library(cost::Kernel kernel) {
    if (kernel.by != cost::LaunchedBy::replay) kernel.by = cost::LaunchedBy::library;
    return kernel;
  }

  void own_first(int t, int ranks) {
    const std::int64_t rows = kernel_of(t + 1).m;
    const std::int64_t own = rows / ranks;
    const std::int64_t before = (ranks - 1) / 2 * own;
    const int pieces = before > 0 ? 3 : 2;
    Task gather = block_.tasks[t];
    gather.waits = moved(gather.waits);
    const int gathered = add(std::move(gather), t);
    add_own_share(t, pieces, product_of_rows(kernel_of(t + 1), own));
    if (before > 0) add_after(gathered, t, 2, pieces, product_of_rows(kernel_of(t + 1), before));
    add_after(gathered, t, pieces, pieces, product_of_rows(kernel_of(t + 1), rows - own - before));
  }

  void scattered(int t, const Cut& cut) {
    const Task& product = block_.tasks[t];
    const Task& scatter = block_.tasks[t + 1];
    const int pieces = cut.pieces;
    cost::Kernel kernel = equal_piece(kernel_of(t), pieces);
    kernel.piece.spared = cut.spared;
    for (int i = 1; i <= pieces; ++i) {
      Task part = piece_of(product, i, pieces);
      part.work = i == 1 ? kernel : in_library(kernel);
      if (i == 1) part.waits = moved(product.waits);
      const int computed = add(std::move(part), t);
      Task sent = piece_of(scatter, i, pieces);
      auto& collective = std::get<Collective>(sent.work);
      collective.payload = collective.payload / pieces;
      collective.in_library = true;
      if (i == 1) sent.waits = moved(without(scatter.waits, t));
      sent.waits.push_back(computed);
      add(std::move(sent), t + 1);
    }
  }

  /// The first piece of a product after a gather: it reads what the gather reads.
  void add_own_share(int t, int pieces, const cost::Kernel& kernel) {
    const Task& gather = block_.tasks[t];
    const Task& product = block_.tasks[t + 1];
    Task own = piece_of(product, 1, pieces);
    own.work = kernel;
    std::ranges::replace(own.reads, gather.writes[0], gather.reads[0]);
    std::vector<int> waits = without(product.waits, t);
    for (const int wait : gather.waits) {
      if (block_.tasks[wait].stream != own.stream) waits.push_back(wait);
    }
    if (const int writer = writer_of(gather.reads[0], t); writer >= 0) waits.push_back(writer);
    own.waits = moved(waits);
    moved_.own_shares.emplace_back(add(std::move(own), t + 1), gather.reads[0]);
  }

  /// A further piece of the product behind the gather `t`. The last one ends after all that reads
  /// the own share, so that is freed with it.
  void add_after(int arrived, int t, int number, int pieces, const cost::Kernel& kernel) {
    Task part = piece_of(block_.tasks[t + 1], number, pieces);
    part.work = kernel;
    part.waits = {arrived};
    if (number == pieces) part.reads.push_back(block_.tasks[t].reads[0]);
    add(std::move(part), t + 1);
  }

  /// The last task before `end` that writes a slot, if it is on another stream than products.
  [[nodiscard]] int writer_of(int slot, int end) const {
    for (int t = end - 1; t >= 0; --t) {
      if (is_in(block_.tasks[t].writes, slot))
        return block_.tasks[t].stream == Stream::compute ? -1 : t;
    }
    return -1;
  }

  [[nodiscard]] const cost::Kernel& kernel_of(int task) const {
    return std::get<cost::Kernel>(block_.tasks[task].work);
  }

  static std::vector<int> without(std::vector<int> list, int value) {
    std::erase(list, value);
    return list;
  }

  [[nodiscard]] std::vector<int> moved(std::vector<int> waits) const {
    for (int& wait : waits) wait = moved_.last[wait];
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    return waits;
  }

  /// Adds a task, or a piece of it, that was number `of`.
  int add(Task task, int of) {
    const auto number = static_cast<int>(tasks_.size());
    if (moved_.first[of] < 0) moved_.first[of] = number;
    moved_.last[of] = number;
    tasks_.push_back(std::move(task));
    return number;
  }

  Block& block_;
  const std::map<int, Cut>& cuts_;
  const std::function<bool(int task)>& by_tokens_;
  std::vector<Task> tasks_;
  Moved moved_;
};

}  // namespace

Moved cut_in_pieces(Block& block, const std::map<int, Cut>& cuts,
                    const std::function<bool(int task)>& by_tokens) {
  return Cutting(block, cuts, by_tokens).run();
}

}  // namespace stratagem::lowering
