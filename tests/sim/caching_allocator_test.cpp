// The caching allocator: by the documented rules on small sequences, and against a second, slow
// implementation on random ones.
#include "sim/caching_allocator.hpp"

#include <map>
#include <optional>
#include <random>

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::sim {
namespace {

constexpr std::int64_t KiB = 1 << 10;
constexpr std::int64_t MiB = 1 << 20;
constexpr std::int64_t plenty = std::int64_t{1} << 45;

using Block = CachingAllocator::Block;
using Piece = CachingAllocator::Piece;
using State = CachingAllocator::State;

/// Sizes of the pieces of a segment, live ones positive, free ones negative.
std::vector<std::int64_t> sizes(const std::vector<Piece>& segment) {
  std::vector<std::int64_t> result;
  for (const Piece& piece : segment)
    result.push_back(piece.state == State::live ? piece.bytes : -piece.bytes);
  return result;
}

std::int64_t round_up(std::int64_t bytes, std::int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// The same rules without lists and ordered sets: live intervals by address and what is mapped,
/// from which free blocks are found anew for every request.
class Naive {
 public:
  Naive(std::int64_t limit, bool expandable) : limit_(limit), expandable_(expandable) {}

  std::int64_t allocate(std::int64_t bytes) {
    const std::int64_t size = round_up(bytes, 512);
    const bool small = size <= MiB;
    std::optional<Run> run = find(size, small);
    if (!run) run = expandable_ ? grow(size, small) : fresh(size, small);
    const std::int64_t rest = run->bytes - size;
    const bool split = small || expandable_ ? rest >= 512 : rest > MiB;
    live_[run->address] = {split ? size : run->bytes, small};
    return run->address;
  }
  void free(std::int64_t address) { live_.erase(address); }

  [[nodiscard]] std::int64_t reserved() const {
    std::int64_t total = 0;
    for (const auto& [address, range] : mapped_) total += range.bytes;
    return total;
  }

 private:
  struct Run {
    std::int64_t address;
    std::int64_t bytes;
  };
  struct Range {
    std::int64_t bytes;
    bool small;
  };

  /// Free runs of a pool in order of addresses. Ranges of `mapped_` that touch are one in
  /// expandable pools only.
  [[nodiscard]] std::vector<Run> runs(bool small) const {
    std::vector<Run> ranges;
    for (const auto& [address, range] : mapped_) {
      if (range.small != small) continue;
      if (expandable_ && !ranges.empty() && ranges.back().address + ranges.back().bytes == address)
        ranges.back().bytes += range.bytes;
      else
        ranges.push_back({address, range.bytes});
    }
    std::vector<Run> result;
    for (const Run& range : ranges) {
      std::int64_t at = range.address;
      for (auto live = live_.lower_bound(at);
           live != live_.end() && live->first < range.address + range.bytes; ++live) {
        if (live->first > at) result.push_back({at, live->first - at});
        at = live->first + live->second.bytes;
      }
      if (at < range.address + range.bytes)
        result.push_back({at, range.address + range.bytes - at});
    }
    return result;
  }

  /// How large an expandable run can become without moving what is live.
  [[nodiscard]] std::int64_t could_be(const Run& run) const {
    const std::int64_t end = run.address + run.bytes;
    const auto live = live_.find(end);
    if (live != live_.end()) return run.bytes;
    const auto next = mapped_.lower_bound(end);
    const std::int64_t base = run.address / far * far;
    return (next == mapped_.end() || next->first >= base + far ? base + far : next->first) -
           run.address;
  }

  [[nodiscard]] std::optional<Run> find(std::int64_t size, bool small) const {
    std::vector<Run> fitting = runs(small);
    std::erase_if(fitting, [&](const Run& run) { return run.bytes < size; });
    if (fitting.empty()) return std::nullopt;
    std::ranges::stable_sort(fitting, {}, &Run::bytes);
    std::size_t best = 0;
    while (expandable_ && best + 1 < fitting.size() &&
           could_be(fitting[best + 1]) < could_be(fitting[best]))
      ++best;
    return fitting[best];
  }

  Run fresh(std::int64_t size, bool small) {
    const std::int64_t bytes =
        small ? 2 * MiB : (size < 10 * MiB ? 20 * MiB : round_up(size, 2 * MiB));
    if (reserved() + bytes > limit_) {
      std::erase_if(mapped_, [&](const auto& entry) {
        const auto live = live_.lower_bound(entry.first);
        return live == live_.end() || live->first >= entry.first + entry.second.bytes;
      });
    }
    mapped_[next_] = {bytes, small};
    next_ += bytes;
    return {next_ - bytes, bytes};
  }

  /// Mapped page by page; every page is an entry.
  Run grow(std::int64_t size, bool small) {
    const std::int64_t page = small ? 2 * MiB : 20 * MiB;
    const std::int64_t base = small ? far : 2 * far;
    const auto is_live = [&](std::int64_t from, std::int64_t to) {
      auto live = live_.lower_bound(to);
      if (live == live_.begin()) return false;
      --live;
      return live->first + live->second.bytes > from;
    };
    // The first place where a hole begins, or free memory in front of one, with room enough.
    const auto place = [&] {
      for (std::int64_t hole = base;; hole += page) {
        if (mapped_.contains(hole)) continue;
        std::int64_t from = hole;
        for (const Run& run : runs(small)) {
          if (run.address + run.bytes == hole) from = run.address;
        }
        if (!is_live(from, from + size)) return from;
      }
    };
    const auto missing = [&](std::int64_t from) {
      std::vector<std::int64_t> pages;
      for (std::int64_t p = base + (from - base) / page * page; p < from + size; p += page) {
        if (!mapped_.contains(p)) pages.push_back(p);
      }
      return pages;
    };
    std::int64_t from = place();
    if (reserved() + static_cast<std::int64_t>(missing(from).size()) * page > limit_) {
      std::erase_if(mapped_, [&](const auto& entry) {
        return !is_live(entry.first, entry.first + entry.second.bytes);
      });
      from = place();
    }
    for (const std::int64_t p : missing(from)) mapped_[p] = {page, small};
    for (const Run& run : runs(small)) {
      if (run.address == from) return run;
    }
    throw BrokenPromise("what was mapped is free");
  }

  static constexpr std::int64_t far = std::int64_t{1} << 50;
  std::int64_t limit_;
  bool expandable_;
  std::int64_t next_ = 0;
  std::map<std::int64_t, Range> mapped_;
  std::map<std::int64_t, Range> live_;
};

/// Mostly small, some large, some around the sizes at which rules change.
std::int64_t random_size(std::mt19937& random) {
  const auto up_to = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  switch (random() % 5) {
    case 0:
      return up_to(4 * KiB);
    case 1:
      return up_to(MiB);
    case 2:
      return up_to(12 * MiB);
    case 3:
      return up_to(100 * MiB);
    default: {
      constexpr std::array<std::int64_t, 4> edges = {512, MiB, 10 * MiB, 20 * MiB};
      return edges[random() % 4] + static_cast<std::int64_t>(random() % 3) - 1;
    }
  }
}

}  // namespace

TEST_CASE("small requests share segments of 2 MiB, in multiples of 512 bytes") {
  CachingAllocator allocator(plenty);
  allocator.allocate(1);
  CHECK(allocator.allocated() == 512);
  CHECK(allocator.reserved() == 2 * MiB);
  allocator.allocate(513);
  CHECK(allocator.allocated() == 512 + 1024);
  // 2 MiB are 4096 times 512 B; three of them are taken.
  for (int i = 3; i < 4096; ++i) allocator.allocate(512);
  CHECK(allocator.reserved() == 2 * MiB);
  allocator.allocate(512);
  CHECK(allocator.reserved() == 4 * MiB);
}

TEST_CASE("up to 1 MiB is small, below 10 MiB shares 20 MiB, above has a segment of its own") {
  CachingAllocator allocator(plenty);
  allocator.allocate(MiB);
  allocator.allocate(MiB);
  CHECK(allocator.reserved() == 2 * MiB);  // both in one small segment
  allocator.allocate(MiB + 1);
  CHECK(allocator.reserved() == 22 * MiB);
  allocator.allocate(10 * MiB - 1024);
  CHECK(allocator.reserved() == 22 * MiB);  // behind the 1 MiB + 512 B: 18.99 MiB were left
  allocator.allocate(10 * MiB);             // of which 9 MiB are left, so it has 10 MiB of its own
  CHECK(allocator.reserved() == 32 * MiB);
  allocator.allocate(10 * MiB + 1);  // a multiple of 2 MiB
  CHECK(allocator.reserved() == 44 * MiB);
}

TEST_CASE("a large block is split where more than 1 MiB is left") {
  CachingAllocator allocator(plenty);
  allocator.allocate(11 * MiB);  // 12 MiB: 1 MiB is not more than 1 MiB
  allocator.allocate(11 * MiB - 512);
  const auto segments = allocator.segments();
  REQUIRE(segments.size() == 2);
  CHECK(sizes(segments[0]) == std::vector<std::int64_t>{12 * MiB});
  CHECK(sizes(segments[1]) == std::vector<std::int64_t>{11 * MiB - 512, -(MiB + 512)});
  CHECK(allocator.allocated() == 23 * MiB - 512);
}

TEST_CASE(
    "the smallest free block that is large enough is taken, and a rest of 1 MiB stays with it") {
  CachingAllocator allocator(plenty);
  const Block thirty = allocator.allocate(30 * MiB);
  const Block fifteen = allocator.allocate(15 * MiB);  // 16 MiB, not split
  const Block ten = allocator.allocate(10 * MiB);
  for (const Block block : {thirty, fifteen, ten}) allocator.free(block);
  CHECK(allocator.reserved() == 56 * MiB);
  allocator.allocate(12 * MiB);
  const auto segments = allocator.segments();
  CHECK(sizes(segments[0]) == std::vector<std::int64_t>{-30 * MiB});
  CHECK(sizes(segments[1]) == std::vector<std::int64_t>{12 * MiB, -4 * MiB});
  CHECK(sizes(segments[2]) == std::vector<std::int64_t>{-10 * MiB});
  CHECK(allocator.reserved() == 56 * MiB);
}

TEST_CASE("freed neighbours become one block, whatever the order") {
  CachingAllocator allocator(plenty);
  std::vector<Block> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(allocator.allocate(4 * MiB));
  for (const int i : {0, 2, 4, 3}) allocator.free(blocks[i]);
  CHECK(sizes(allocator.segments()[0]) == std::vector<std::int64_t>{-4 * MiB, 4 * MiB, -12 * MiB});
  allocator.free(blocks[1]);
  CHECK(sizes(allocator.segments()[0]) == std::vector<std::int64_t>{-20 * MiB});
  CHECK(allocator.allocated() == 0);
  CHECK(allocator.reserved() == 20 * MiB);  // kept
}

TEST_CASE("memory that is free in pieces does not serve a request for all of it") {
  // 80 MiB are free in two segments; 60 MiB want a third.
  CachingAllocator allocator(plenty);
  const Block a = allocator.allocate(40 * MiB);
  const Block b = allocator.allocate(40 * MiB);
  allocator.free(a);
  allocator.free(b);
  allocator.allocate(60 * MiB);
  CHECK(allocator.reserved() == 140 * MiB);
  // With expandable segments the two lie behind each other in pages of 20 MiB, and serve it.
  CachingAllocator expandable(plenty, true);
  const Block c = expandable.allocate(40 * MiB);
  const Block d = expandable.allocate(40 * MiB);
  expandable.free(c);
  expandable.free(d);
  expandable.allocate(60 * MiB);
  CHECK(expandable.reserved() == 80 * MiB);
  expandable.allocate(21 * MiB);  // 20 MiB are left, one page more is mapped
  CHECK(expandable.reserved() == 100 * MiB);
  CHECK(sizes(expandable.segments()[0]) ==
        std::vector<std::int64_t>{60 * MiB, 21 * MiB, -19 * MiB});
}

TEST_CASE(
    "where the driver has no more, free segments go back, and what is still wanting is beyond it") {
  CachingAllocator allocator(100 * MiB);
  const Block a = allocator.allocate(40 * MiB);
  allocator.allocate(40 * MiB);
  allocator.free(a);
  allocator.allocate(50 * MiB);  // 80 + 50 > 100: the free 40 go back
  CHECK(allocator.releases() == 1);
  CHECK(allocator.reserved() == 90 * MiB);
  allocator.allocate(12 * MiB);  // nothing is free: out of memory by 2 MiB
  CHECK(allocator.releases() == 1);
  CHECK(allocator.peak_reserved() == 102 * MiB);
}

TEST_CASE("nothing goes back where the driver has just enough") {
  CachingAllocator allocator(100 * MiB);
  allocator.free(allocator.allocate(40 * MiB));
  allocator.allocate(60 * MiB);
  CHECK(allocator.releases() == 0);
  CHECK(allocator.reserved() == 100 * MiB);
}

TEST_CASE("a segment with a live block stays") {
  CachingAllocator allocator(40 * MiB);
  const Block nine = allocator.allocate(9 * MiB);
  allocator.allocate(2 * MiB);
  allocator.free(nine);
  allocator.allocate(30 * MiB);  // 18 of 20 MiB are free, but in pieces, and not for the driver
  CHECK(allocator.releases() == 0);
  CHECK(allocator.reserved() == 50 * MiB);
}

TEST_CASE("expandable segments give back whole free pages, also from their middle") {
  CachingAllocator allocator(100 * MiB, true);
  std::vector<Block> blocks;
  for (const std::int64_t mib : {25, 30, 25, 20}) blocks.push_back(allocator.allocate(mib * MiB));
  CHECK(allocator.reserved() == 100 * MiB);
  allocator.free(blocks[1]);  // 25 to 55 MiB: the page from 40 to 60 is used, none lies within
  allocator.free(blocks[2]);  // 25 to 80 MiB: the pages from 40 to 80
  allocator.allocate(70 * MiB);
  // 55 MiB in the middle are too few. 40 go back, and 80 are mapped behind the last block.
  CHECK(allocator.releases() == 1);
  CHECK(allocator.reserved() == 140 * MiB);
  CHECK(sizes(allocator.segments()[0]) ==
        std::vector<std::int64_t>{25 * MiB, -15 * MiB, -40 * MiB, 20 * MiB, 70 * MiB, -10 * MiB});
}

TEST_CASE(
    "blocks tile segments, live ones are those that were asked for, all free is one block each") {
  for (const bool expandable : {false, true}) {
    std::mt19937 random(17);
    for (int trial = 0; trial < 20; ++trial) {
      CachingAllocator allocator(500 * MiB, expandable);
      std::vector<std::pair<Block, std::int64_t>> live;
      std::int64_t wanted = 0;
      for (int step = 0; step < 300; ++step) {
        if (live.empty() || random() % 5 < 3) {
          const std::int64_t bytes = random_size(random);
          live.emplace_back(allocator.allocate(bytes), bytes);
          wanted += round_up(bytes, 512);
        } else {
          std::swap(live[random() % live.size()], live.back());
          allocator.free(live.back().first);
          wanted -= round_up(live.back().second, 512);
          live.pop_back();
        }
        std::int64_t mapped = 0;
        std::int64_t used = 0;
        std::size_t count = 0;
        std::int64_t end = 0;
        for (const std::vector<Piece>& segment : allocator.segments()) {
          if (segment.empty()) continue;
          CHECK(segment.front().address >= end);
          end = segment.front().address;
          State before = State::live;
          for (const Piece& piece : segment) {
            CHECK(piece.address == end);
            CHECK(piece.bytes > 0);
            if (piece.state != State::live) CHECK(piece.state != before);  // joined
            before = piece.state;
            end += piece.bytes;
            if (piece.state != State::unmapped) mapped += piece.bytes;
            if (piece.state == State::live) used += piece.bytes;
            count += piece.state == State::live;
          }
        }
        CHECK(count == live.size());
        CHECK(used == allocator.allocated());
        CHECK(mapped == allocator.reserved());
        CHECK(used >= wanted);
        CHECK(used <= wanted + static_cast<std::int64_t>(count) * MiB);
        CHECK(allocator.peak_reserved() >= allocator.reserved());
      }
      for (const auto& [block, bytes] : live) allocator.free(block);
      CHECK(allocator.allocated() == 0);
      if (expandable) continue;  // holes may stand between free pages
      for (const std::vector<Piece>& segment : allocator.segments()) CHECK(segment.size() == 1);
    }
  }
}

TEST_CASE("a slow allocator of the same rules puts every block at the same place") {
  for (const bool expandable : {false, true}) {
    for (const std::int64_t limit : {plenty, 300 * MiB}) {
      std::mt19937 random(23);
      for (int trial = 0; trial < 15; ++trial) {
        CachingAllocator fast(limit, expandable);
        Naive slow(limit, expandable);
        std::vector<std::pair<Block, std::int64_t>> live;
        for (int step = 0; step < 200; ++step) {
          if (live.empty() || random() % 9 < 5) {
            const std::int64_t bytes = random_size(random);
            live.emplace_back(fast.allocate(bytes), slow.allocate(bytes));
          } else {
            std::swap(live[random() % live.size()], live.back());
            fast.free(live.back().first);
            slow.free(live.back().second);
            live.pop_back();
          }
          REQUIRE(fast.reserved() == slow.reserved());
        }
      }
    }
  }
}

TEST_CASE("a block is freed once, and has a size") {
  CachingAllocator allocator(plenty);
  const Block block = allocator.allocate(100 * MiB);
  allocator.free(block);
  CHECK_THROWS_AS(allocator.free(block), BrokenPromise);
  CHECK_THROWS_AS(allocator.allocate(0), BrokenPromise);
}

TEST_CASE("a block that a collective works on is free when that has ended, not when it is freed") {
  CachingAllocator allocator(std::int64_t{100} << 20);
  const auto first = allocator.allocate(30 << 20);
  allocator.free_when(first, 1000);
  CHECK(allocator.allocated() == 0);
  allocator.advance(999);
  const auto second = allocator.allocate(30 << 20);  // beside the first
  CHECK(allocator.reserved() == 60 << 20);
  allocator.advance(1000);
  allocator.free(allocator.allocate(30 << 20));  // in its place
  CHECK(allocator.reserved() == 60 << 20);
  // Where the driver has no more, what is busy is waited for, then given back: 30 live, 60 new.
  allocator.free_when(allocator.allocate(30 << 20), 2000);
  allocator.free(allocator.allocate(60 << 20));
  CHECK(allocator.releases() == 1);
  CHECK(allocator.reserved() == 90 << 20);
  allocator.free(second);
}

}  // namespace stratagem::sim
