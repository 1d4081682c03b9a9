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
      : tasks_(block), cuts_(cuts), by_tokens_(by_tokens) {}

  Moved run() {
    for (int t = 0; t < tasks_.count(); ++t) {
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
        tasks_.keep(t);
      }
    }
    return tasks_.finish();
  }

 private:
  /// How a collective is cut, if the second of two tasks reads what the first writes.
  [[nodiscard]] const Cut* cut_at(int collective, int first, int second) const {
    const auto found = cuts_.find(collective);
    if (found == cuts_.end() || second >= tasks_.count()) return nullptr;
    const std::vector<int>& written = tasks_.old(first).writes;
    const bool passed_on = !written.empty() && is_in(tasks_.old(second).reads, written[0]);
    return passed_on ? &found->second : nullptr;
  }

  /// Is it a product with tokens for each piece?
  [[nodiscard]] bool divides(int task, const Cut& cut) const {
    const auto* kernel = std::get_if<cost::Kernel>(&tasks_.old(task).work);
    return kernel != nullptr && kernel->kind == cost::KernelKind::gemm && kernel->batch == 1 &&
           kernel->m >= cut.pieces && by_tokens_(task);
  }

  void by_ring(int t, int ranks) {
    const Task& gather = tasks_.old(t);
    const auto& whole = std::get<Collective>(gather.work);
    add_own_share(t, ranks, equal_piece(tasks_.kernel_of(t + 1), ranks));
    for (int i = 1; i < ranks; ++i) {
      Task exchange = piece_of(gather, i, ranks - 1);
      exchange.work = Collective{.kind = cost::CollectiveKind::ring_exchange,
                                 .group = whole.group,
                                 .payload = whole.payload / ranks,
                                 .in_library = true};
      if (i == 1) exchange.waits = tasks_.moved(gather.waits);
      const int arrived = tasks_.add(std::move(exchange), t);
      add_after(arrived, t, i + 1, ranks, in_library(equal_piece(tasks_.kernel_of(t + 1), ranks)));
    }
  }

  static cost::Kernel in_library(cost::Kernel kernel) {
    kernel.by = within_call(kernel.by);
    return kernel;
  }

  void own_first(int t, int ranks) {
    const std::int64_t rows = tasks_.kernel_of(t + 1).m;
    const std::int64_t own = rows / ranks;
    const std::int64_t before = (ranks - 1) / 2 * own;
    const int pieces = before > 0 ? 3 : 2;
    Task gather = tasks_.old(t);
    gather.waits = tasks_.moved(gather.waits);
    const int gathered = tasks_.add(std::move(gather), t);
    add_own_share(t, pieces, product_of_rows(tasks_.kernel_of(t + 1), own));
    if (before > 0)
      add_after(gathered, t, 2, pieces, product_of_rows(tasks_.kernel_of(t + 1), before));
    add_after(gathered, t, pieces, pieces,
              product_of_rows(tasks_.kernel_of(t + 1), rows - own - before));
  }

  void scattered(int t, const Cut& cut) {
    const Task& product = tasks_.old(t);
    const Task& scatter = tasks_.old(t + 1);
    const int pieces = cut.pieces;
    cost::Kernel kernel = equal_piece(tasks_.kernel_of(t), pieces);
    kernel.piece.spared = cut.spared;
    for (int i = 1; i <= pieces; ++i) {
      Task part = piece_of(product, i, pieces);
      part.work = i == 1 ? kernel : in_library(kernel);
      if (i == 1) part.waits = tasks_.moved(product.waits);
      const int computed = tasks_.add(std::move(part), t);
      Task sent = piece_of(scatter, i, pieces);
      auto& collective = std::get<Collective>(sent.work);
      collective.payload = collective.payload / pieces;
      collective.in_library = true;
      if (i == 1) sent.waits = tasks_.moved(without(scatter.waits, t));
      sent.waits.push_back(computed);
      tasks_.add(std::move(sent), t + 1);
    }
  }

  /// The first piece of a product after a gather: it reads what the gather reads.
  void add_own_share(int t, int pieces, const cost::Kernel& kernel) {
    const Task& gather = tasks_.old(t);
    const Task& product = tasks_.old(t + 1);
    Task own = piece_of(product, 1, pieces);
    own.work = kernel;
    std::ranges::replace(own.reads, gather.writes[0], gather.reads[0]);
    std::vector<int> waits = without(product.waits, t);
    for (const int wait : gather.waits) {
      if (tasks_.old(wait).stream != own.stream) waits.push_back(wait);
    }
    if (const int writer = tasks_.writer_of(gather.reads[0], t); writer >= 0)
      waits.push_back(writer);
    own.waits = tasks_.moved(waits);
    tasks_.computes_own_share(tasks_.add(std::move(own), t + 1), gather.reads[0]);
  }

  /// A further piece of the product behind the gather `t`. The last one ends after all that reads
  /// the own share, so that is freed with it.
  void add_after(int arrived, int t, int number, int pieces, const cost::Kernel& kernel) {
    Task part = piece_of(tasks_.old(t + 1), number, pieces);
    part.work = kernel;
    part.waits = {arrived};
    if (number == pieces) part.reads.push_back(tasks_.old(t).reads[0]);
    tasks_.add(std::move(part), t + 1);
  }

  static std::vector<int> without(std::vector<int> list, int value) {
    std::erase(list, value);
    return list;
  }

  Rewriting tasks_;
  const std::map<int, Cut>& cuts_;
  const std::function<bool(int task)>& by_tokens_;
};

}  // namespace

Moved cut_in_pieces(Block& block, const std::map<int, Cut>& cuts,
                    const std::function<bool(int task)>& by_tokens) {
  return Cutting(block, cuts, by_tokens).run();
}

}  // namespace stratagem::lowering
