// Replays a framework's caching allocator: what it takes from the driver for a sequence of
// allocations and frees.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace stratagem::sim {

/// The CUDA caching allocator of PyTorch, replayed; sizes in bytes.
///
/// A request is rounded up to 512 B. Up to 1 MiB it is served from the pool of small segments, of
/// 2 MiB each; others from the pool of large ones: a segment of 20 MiB where less than 10 MiB are
/// wanted, else one of the request's size rounded up to 2 MiB. Of the free blocks of its pool the
/// smallest that is large enough is taken, of equal ones that of the lowest address. What it has
/// too much is split off if it is at least 512 B (small) or more than 1 MiB (large). A freed block
/// joins free neighbours, and segments stay with the allocator. Where the driver has no more
/// memory, segments without a live block are given back; where that is not enough, the request is
/// out of memory: it is served nevertheless, beyond the limit, so that a replay says how much is
/// wanting.
///
/// With `expandable` segments (PyTorch's expandable_segments:True) each pool is one range of
/// addresses: what is missing behind its free blocks is mapped in pages of 2 MiB (small) or 20 MiB
/// (large), every rest from 512 B on is split off, and free pages are what is given back.
///
/// A block that collectives work on, on their own stream, is free when they have ended, if its
/// owner has freed it before (record_stream); where the driver has no more memory all of these are
/// waited for first. The allocator asks for their events in the order of their ends, where older
/// versions stop at the first in the order of frees that has not ended.
///
/// All buffers come from the pools of one stream. What is not modelled: max_split_size_mb,
/// roundup_power2_divisions, garbage collection, CUDA graphs' private pools. New
/// segments have higher addresses than older ones, which a driver does not promise.
/// Source: pytorch, c10/cuda/CUDACachingAllocator.cpp (its constants: 1.2 to 2.8).
class CachingAllocator {
 public:
  using Block = int;

  explicit CachingAllocator(std::int64_t limit, bool expandable = false);

  /// Expects more than 0 bytes.
  Block allocate(std::int64_t bytes);
  void free(Block block);
  /// Frees a block that another stream than that of the pools works on until the instant `ready`:
  /// it is no longer counted as allocated, but only serves requests from then on (record_stream).
  void free_when(Block block, std::int64_t ready);
  /// The host's clock is at `now`: what is ready by then is free. Does not go back.
  void advance(std::int64_t now) {
    while (!busy_.empty() && busy_.front().first <= now) give_back_first();
  }

  [[nodiscard]] std::int64_t reserved() const { return reserved_; }
  [[nodiscard]] std::int64_t peak_reserved() const { return peak_reserved_; }
  /// Sum of live blocks: what was asked for, rounded up, with rests that are not split off. This is
  /// what torch.cuda.memory_allocated counts.
  [[nodiscard]] std::int64_t allocated() const { return allocated_; }
  [[nodiscard]] std::int64_t peak_allocated() const { return peak_allocated_; }
  /// Times that cached segments were given back because the driver had no more.
  [[nodiscard]] int releases() const { return releases_; }

  /// A piece of the address space that is live, free, or not mapped.
  enum class State : std::uint8_t { live, free, unmapped };
  struct Piece {
    std::int64_t address = 0;
    std::int64_t bytes = 0;
    State state = State::free;
  };
  /// Every segment from its first address to its last; without the unmapped end of expandable ones.
  [[nodiscard]] std::vector<std::vector<Piece>> segments() const;
  [[nodiscard]] std::int64_t address(Block block) const { return nodes_[block].piece.address; }
  /// All that later requests depend on, at an instant: pieces in the order of addresses, which of
  /// them are of `blocks` (-1: none), and when others are free, counted from `now`.
  [[nodiscard]] std::vector<std::int64_t> state(std::int64_t now,
                                                const std::vector<Block>& blocks) const;

 private:
  struct Node {
    Piece piece;  ///< of no bytes: the number is spare
    bool small = false;
    Block before = -1;
    Block after = -1;
  };
  struct FreeBlock {
    std::int64_t bytes = 0;
    std::int64_t address = 0;
    Block block = -1;
    friend bool operator<(const FreeBlock& a, const FreeBlock& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.address < b.address;
    }
  };
  using FreeBlocks = std::vector<FreeBlock>;
  /// Blocks by size, then address; those not mapped by address. Some hundreds at most are free at
  /// once, so a list is faster than a tree.
  struct Pool {
    FreeBlocks free;
    std::set<std::pair<std::int64_t, Block>> unmapped;
    std::int64_t base = -1;  ///< of the range of an expandable pool; -1: there is none yet
  };

  [[nodiscard]] Pool& pool(bool small) { return pools_[small ? 0 : 1]; }
  Piece& piece(Block block) { return nodes_[block].piece; }
  [[nodiscard]] bool is_live(Block block) const {
    return block >= 0 && block < static_cast<Block>(nodes_.size()) &&
           nodes_[block].piece.state == State::live && nodes_[block].piece.bytes > 0;
  }
  [[nodiscard]] bool is_free(Block block) const {
    return block >= 0 && nodes_[block].piece.state == State::free;
  }
  Block add(Piece piece, bool small, Block before, Block after);
  void give_back(Block block);
  void give_back_first();
  void join_next(Block block);
  [[nodiscard]] FreeBlock entry_of(Block block) const {
    return {nodes_[block].piece.bytes, nodes_[block].piece.address, block};
  }
  void insert_free(Block block);
  void erase_free(Block block);
  void replace_free(FreeBlocks::iterator old, Block block);
  [[nodiscard]] FreeBlocks::iterator find_free(Block block);
  [[nodiscard]] bool splits(std::int64_t rest, bool small) const;
  Block split(Block block, std::int64_t bytes, State rest);
  void cut(Block block, std::int64_t bytes, State rest);
  [[nodiscard]] FreeBlocks::iterator best_fit(std::int64_t bytes, bool small);
  Block take_from(FreeBlocks::iterator found, std::int64_t bytes, bool small);
  Block new_segment(std::int64_t bytes, bool small);
  Block expand(std::int64_t bytes, bool small);
  Block place_to_expand(std::int64_t bytes, bool small);
  [[nodiscard]] std::int64_t to_be_mapped(Block place, std::int64_t bytes) const;
  void map_begin(Block block, std::int64_t bytes);
  void take(std::int64_t bytes);
  void release();
  void release_segments(Pool& pool);
  void release_pages(Pool& pool);
  void unmap(Block block, std::int64_t begin, std::int64_t end);

  std::int64_t limit_;
  bool expandable_;
  std::int64_t next_address_ = 0;
  std::int64_t reserved_ = 0;
  std::int64_t peak_reserved_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t peak_allocated_ = 0;
  int releases_ = 0;
  std::vector<Node> nodes_;
  std::vector<Block> spare_;
  /// Freed, by when they are ready: a heap, the first of them in front.
  std::vector<std::pair<std::int64_t, Block>> busy_;
  std::array<Pool, 2> pools_;
};

}  // namespace stratagem::sim
