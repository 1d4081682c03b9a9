// Groups, buffers and calls of collectives.
#include "calibrate/measure/collective_experiments.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "calibrate/measure/collective_call.hpp"

namespace stratagem::calibrate {
namespace {

using cost::CollectiveKind;
using kernels::Communicator;

constexpr std::int64_t element = sizeof(float);
constexpr std::int64_t kibi = 1024;
constexpr std::int64_t largest = 64 * kibi * kibi;

/// Buffers of zeros: what is dealt was last used a whole pool ago, or a working set.
class Buffers {
 public:
  Buffers(std::size_t elements, std::optional<std::size_t> working_set)
      : zeros_(elements, 0.0F), working_set_(working_set) {}

  /// The next buffers are of an experiment that needs so many elements at once.
  void begin(std::size_t elements) {
    end_ = zeros_.size();
    if (working_set_) end_ = std::min(end_, std::max(*working_set_, elements));
    used_ = 0;
  }

  std::span<float> next(std::size_t elements) {
    if (used_ + elements > end_) used_ = 0;
    used_ += elements;
    return std::span(zeros_).subspan(used_ - elements, elements);
  }

 private:
  std::vector<float> zeros_;
  std::optional<std::size_t> working_set_;
  std::size_t end_ = 0;
  std::size_t used_ = 0;
};

void run(CollectiveKind kind, Communicator& group, std::size_t elements, Buffers& buffers) {
  call_collective(kind, group, elements, buffers, [&](std::size_t all) {
    if (group.rank() == 0) return group.send(1, buffers.next(all));
    if (group.rank() == 1) return group.receive(0, buffers.next(all));
  });
}

using SharedBuffers = std::shared_ptr<Buffers>;

Experiment experiment(CollectiveKind kind, const Grouping& grouping, std::int64_t size,
                      const SharedBuffers& buffers, Communicator& ranks) {
  const auto prepare = [=, all = &ranks]() -> std::function<void()> {
    const std::vector<int> members = group_of(grouping, all->rank(), all->size());
    if (members.empty()) return [] {};
    const auto position = std::ranges::find(members, all->rank());
    expects(position != members.end(), "a rank is in its group");
    const std::shared_ptr<Communicator> group = all->group(members);
    const auto elements = static_cast<std::size_t>(size / element);
    buffers->begin(3 * elements);
    return [=] { run(kind, *group, elements, *buffers); };
  };
  return {.kind = "mpi_" + cost::to_text(kind),
          .operation = "",
          .columns = {"ranks", "stride", "size B"},
          .sizes = {grouping.size, grouping.stride, size},
          .transposes = "",
          .flops = {},
          .bytes = Bytes{static_cast<double>(size)},
          .prepare = prepare};
}

}  // namespace

std::vector<Grouping> groupings(Sweep sweep, int ranks) {
  std::vector<Grouping> result;
  for (int size = 2; size <= ranks; ++size) {
    const bool power = (size & (size - 1)) == 0;
    if (sweep == Sweep::quick && !power && size != ranks) continue;
    const int widest = ranks / size;
    std::set<int> strides = {1, widest};
    for (int stride = 2; sweep == Sweep::full && stride < widest; stride *= 2)
      strides.insert(stride);
    for (const int stride : strides) result.push_back({.size = size, .stride = stride});
  }
  return result;
}

std::vector<int> group_of(const Grouping& grouping, int rank, int ranks) {
  const int run = grouping.size * grouping.stride;
  const int begin = rank / run * run;
  if (begin + run > ranks) return {};
  std::vector<int> members;
  for (int i = 0; i < grouping.size; ++i)
    members.push_back(begin + rank % grouping.stride + i * grouping.stride);
  return members;
}

std::vector<Experiment> collective_experiments(Sweep sweep, Bytes cache, Communicator& ranks,
                                               std::optional<Bytes> working_set) {
  if (ranks.size() < 2) return {};
  std::optional<std::size_t> turn;
  if (working_set) turn = static_cast<std::size_t>(working_set->value / element);
  const auto buffers = std::make_shared<Buffers>(
      static_cast<std::size_t>((2 * cache.value + 3.0 * largest) / element), turn);
  std::vector<Experiment> result;
  for (const Grouping& grouping : groupings(sweep, ranks.size())) {
    for (const CollectiveKind kind : measured_collectives) {
      if (kind == CollectiveKind::send && grouping.size != 2) continue;
      for (std::int64_t size = kibi; size <= largest; size *= 2)
        result.push_back(experiment(kind, grouping, size, buffers, ranks));
    }
  }
  return result;
}

}  // namespace stratagem::calibrate
