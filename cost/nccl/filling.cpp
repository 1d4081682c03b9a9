// Depth-first search over the orders of channels, with the links' remaining speeds.
#include "cost/nccl/filling.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "cost/nccl/free_links.hpp"

namespace stratagem::cost::nccl {
namespace {

class Filling {
 public:
  Filling(const Server& server, const Paths& paths, const Terms& terms, FreeLinks& links)
      : server_(server),
        paths_(paths),
        terms_(terms),
        links_(links),
        steps_(terms.same_order ? 1 << 8 : 1 << 14),
        size_(static_cast<int>(server.gpus.size())) {
    if (terms.several_nodes) adapters_ = links.adapters();
  }

  std::vector<Channel> run() {
    add_channel();
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool finished() const {
    return steps_ <= 0 || static_cast<int>(best_.size()) >= terms_.most;
  }

  // ---- channels

  void add_channel() {
    if (chosen_.size() > best_.size()) best_ = chosen_;
    if (finished()) return;
    if (!terms_.several_nodes) return start_anywhere();
    for (std::size_t i = 0; i < adapters_.size() && !finished(); ++i)
      start_at_adapter(adapters_[(chosen_.size() + i) % adapters_.size()]);
  }

  /// Within one server: first as the channel before, then, if orders may differ, from every GPU.
  void start_anywhere() {
    const bool first = chosen_.empty();
    if (!first) follow(chosen_.back().gpus);
    if (!first && terms_.same_order) return;
    // A ring is the same from wherever it is told.
    const int starts = terms_.pattern == Pattern::ring ? 1 : size_;
    for (int g = 0; g < starts && !finished(); ++g) {
      begin(g, -1);
      extend({});
      abandon();
    }
  }

  void start_at_adapter(int nic) {
    std::vector<int> order(size_);
    std::iota(order.begin(), order.end(), 0);
    if (terms_.same_order && !chosen_.empty()) order = {chosen_.front().gpus.front()};
    std::ranges::stable_sort(
        order, [&](int a, int b) { return paths_.in[nic][a].type < paths_.in[nic][b].type; });
    for (const int g : order) {
      const Path& path = paths_.in[nic][g];
      if (!links_.near(path) || finished()) continue;
      const std::vector<int> edges = links_.with_port(path, nic, false);
      if (!links_.take(edges, terms_.inter)) continue;
      begin(g, nic);
      const bool repeats = terms_.same_order && !chosen_.empty();
      extend(repeats ? chosen_.front().gpus : std::vector<int>{});
      abandon();
      links_.take(edges, -1 * terms_.inter);
    }
  }

  void follow(const std::vector<int>& order) {
    begin(order.front(), -1);
    extend(order);
    abandon();
  }

  void begin(int gpu, int nic) { open_ = {.gpus = {gpu}, .nic_in = nic, .nic_out = -1}; }
  void abandon() { open_ = {}; }

  // ---- one channel
  //
  // The search is as deep as all of its channels are long: 1,152 GPUs for 16 of an NVL72. What
  // needs room of its own on the stack stays out of line, so that the frames of extend and advance
  // are small.

  /// Adds the next GPU to the open channel: that of `order` where one is given, else each in turn.
  void extend(const std::vector<int>& order) {
    if (finished()) return;
    --steps_;
    const std::size_t placed = open_.gpus.size();
    if (leaves_here(placed)) return leave(order);
    advance(order);
  }

  /// Do trees go back to their adapter from the GPU that was placed last? Rings do at their end.
  [[nodiscard]] bool leaves_here(std::size_t placed) const {
    if (!terms_.several_nodes || terms_.pattern == Pattern::ring) return false;
    if (left_ >= static_cast<int>(placed)) return false;
    return placed == 1 || (placed == 2 && terms_.pattern == Pattern::balanced_tree);
  }

  /// The way of a tree from its last GPU back to the adapter that it came in by.
  [[gnu::noinline]] void leave(const std::vector<int>& order) {
    const bool shared = terms_.pattern == Pattern::balanced_tree && size_ > 1;
    const Path& path = paths_.out[open_.gpus.back()][open_.nic_in];
    const BytesPerSecond amount = terms_.inter / (shared ? 2 : 1);
    const std::vector<int> edges = links_.with_port(path, open_.nic_in, true);
    if (!links_.near(path) || !links_.take(edges, amount)) return;
    const int before = left_;
    left_ = static_cast<int>(open_.gpus.size());
    open_.nic_out = open_.nic_in;
    advance(order);
    left_ = before;
    links_.take(edges, -1 * amount);
  }

  void advance(const std::vector<int>& order) {
    if (static_cast<int>(open_.gpus.size()) == size_) return close();
    for (const int next : candidates(order)) {
      const Path& path = paths_.between[open_.gpus.back()][next];
      if (finished()) return;
      if (!path.exists() || path.type > terms_.max_intra || !links_.take(path.edges, terms_.intra))
        continue;
      open_.gpus.push_back(next);
      extend(order);
      open_.gpus.pop_back();
      links_.take(path.edges, -1 * terms_.intra);
    }
  }

  [[nodiscard]] bool placed(int g) const {
    return std::ranges::find(open_.gpus, g) != open_.gpus.end();
  }

  /// On a switch: the neighbours in number that are not yet on the channel. Rings try the one
  /// before first, balanced trees the one after; plain trees try no other than that.
  [[nodiscard]] std::vector<int> neighbours() const {
    const int last = open_.gpus.back();
    const int after = (last + 1) % size_;
    const int before = (last + size_ - 1) % size_;
    std::vector<int> next;
    if (terms_.pattern == Pattern::ring) next = {before, after};
    if (terms_.pattern == Pattern::balanced_tree) next = {after, before};
    if (terms_.pattern == Pattern::tree) next = {after};
    std::erase_if(next, [this](int g) { return placed(g); });
    return next;
  }

  /// GPUs that are not yet on the channel: those that a ring can leave from last, else the nearest
  /// kind of path first, else the widest, else the next in number.
  [[nodiscard, gnu::noinline]] std::vector<int> candidates(const std::vector<int>& order) const {
    if (!order.empty()) return {order[open_.gpus.size()]};
    if (server_.nv_switch() >= 0) return neighbours();
    const int last = open_.gpus.back();
    std::vector<int> next;
    for (int i = 1; i < size_; ++i) {
      const int g = (last + i) % size_;
      if (!placed(g)) next.push_back(g);
    }
    const auto key = [&](int g) {
      const bool exit = terms_.several_nodes && terms_.pattern == Pattern::ring &&
                        !terms_.across_nics && links_.near(paths_.out[g][open_.nic_in]);
      const Path& path = paths_.between[last][g];
      return std::tuple{exit, path.type, -1 * links_.width(path)};
    };
    std::ranges::stable_sort(next, [&](int a, int b) { return key(a) < key(b); });
    return next;
  }

  /// All GPUs are on the channel: a ring goes back to its start or out of an adapter.
  [[gnu::noinline]] void close() {
    if (terms_.pattern != Pattern::ring) return accept();
    if (terms_.several_nodes) return close_at_adapter();
    if (size_ == 1) return accept();
    const Path& path = paths_.between[open_.gpus.back()][open_.gpus.front()];
    if (!path.exists() || path.type > terms_.max_intra || !links_.take(path.edges, terms_.intra))
      return;
    accept();
    links_.take(path.edges, -1 * terms_.intra);
  }

  /// By the adapter that it came in by or, if it may, by one that its last GPU would rather have.
  void close_at_adapter() {
    const int last = open_.gpus.back();
    leave_ring(last, open_.nic_in);
    if (!terms_.across_nics) return;
    for (const int nic : links_.preferred(last)) {
      if (nic != open_.nic_in) leave_ring(last, nic);
    }
  }

  void leave_ring(int last, int nic) {
    const Path& path = paths_.out[last][nic];
    const std::vector<int> edges = links_.with_port(path, nic, true);
    if (finished() || !links_.near(path) || !links_.take(edges, terms_.inter)) return;
    open_.nic_out = nic;
    accept();
    links_.take(edges, -1 * terms_.inter);
  }

  void accept() {
    const Channel open = open_;
    const int left = left_;
    chosen_.push_back(open);
    left_ = 0;
    add_channel();
    chosen_.pop_back();
    open_ = open;
    left_ = left;
  }

  const Server& server_;
  const Paths& paths_;
  const Terms& terms_;
  FreeLinks& links_;
  int steps_;
  int size_;
  std::vector<int> adapters_;  ///< in the order in which channels begin at them
  Channel open_;               ///< the channel that is being made
  int left_ = 0;               ///< after how many of its GPUs a tree last went to its adapter
  std::vector<Channel> chosen_;
  std::vector<Channel> best_;
};

}  // namespace

std::vector<Channel> fill(const Server& server, const Paths& paths, const Terms& terms) {
  FreeLinks links(server, paths, terms);
  if (terms.pattern == Pattern::nvls) return switch_channels(server, paths, terms, links);
  return Filling(server, paths, terms, links).run();
}

}  // namespace stratagem::cost::nccl
