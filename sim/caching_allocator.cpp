// Blocks are numbered nodes of one list a segment; pools know the free ones by size.
#include "sim/caching_allocator.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/input_error.hpp"

namespace stratagem::sim {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t least = 512;  ///< what sizes are multiples of, and the least rest of a split
constexpr std::int64_t most_small = mebibyte;
constexpr std::int64_t small_segment = 2 * mebibyte;
constexpr std::int64_t large_segment = 20 * mebibyte;
constexpr std::int64_t least_own = 10 * mebibyte;  ///< from here on segments are made to measure
constexpr std::int64_t own_multiple = 2 * mebibyte;
constexpr std::int64_t endless = std::int64_t{1} << 50;  ///< addresses of an expandable pool

std::int64_t round_up(std::int64_t bytes, std::int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// What is asked of the driver for a request that no free block holds.
std::int64_t segment_for(std::int64_t bytes) {
  if (bytes <= most_small) return small_segment;
  return bytes < least_own ? large_segment : round_up(bytes, own_multiple);
}

std::int64_t page_of(bool small) { return small ? small_segment : large_segment; }

}  // namespace

CachingAllocator::CachingAllocator(std::int64_t limit, bool expandable)
    : limit_(limit), expandable_(expandable) {}

CachingAllocator::Block CachingAllocator::allocate(std::int64_t bytes) {
  expects(bytes > 0, "a block has more than 0 bytes");
  const std::int64_t size = round_up(bytes, least);
  const bool small = size <= most_small;
  const auto found = best_fit(size, small);
  Block block = -1;
  if (found != pool(small).free.end()) {
    block = take_from(found, size, small);
  } else {
    block = expandable_ ? expand(size, small) : new_segment(segment_for(size), small);
    if (splits(piece(block).bytes - size, small)) cut(block, size, State::free);
  }
  piece(block).state = State::live;
  allocated_ += piece(block).bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return block;
}

bool CachingAllocator::splits(std::int64_t rest, bool small) const {
  return small || expandable_ ? rest >= least : rest > most_small;
}

/// A block of a list of free ones is free no more; what it has too much takes its place there.
CachingAllocator::Block CachingAllocator::take_from(FreeBlocks::iterator found, std::int64_t bytes,
                                                    bool small) {
  const Block block = found->block;
  if (splits(piece(block).bytes - bytes, small)) {
    replace_free(found, split(block, bytes, State::free));
  } else {
    pool(small).free.erase(found);
  }
  return block;
}

void CachingAllocator::free(Block block) {
  expects(is_live(block), "only live blocks are freed");
  allocated_ -= piece(block).bytes;
  give_back(block);
}

void CachingAllocator::free_when(Block block, std::int64_t ready) {
  expects(is_live(block), "only live blocks are freed");
  allocated_ -= piece(block).bytes;
  busy_.emplace_back(ready, block);
  std::ranges::push_heap(busy_, std::greater{});
}

/// Of those that are freed, the one that is ready first.
void CachingAllocator::give_back_first() {
  std::ranges::pop_heap(busy_, std::greater{});
  const Block block = busy_.back().second;
  busy_.pop_back();
  give_back(block);
}

/// Makes a block free, and one with its free neighbours.
void CachingAllocator::give_back(Block block) {
  piece(block).state = State::free;
  const auto [before, after] = std::pair(nodes_[block].before, nodes_[block].after);
  const bool joins_before = is_free(before), joins_after = is_free(after);
  if (!joins_before && !joins_after) return insert_free(block);
  if (joins_before && joins_after) erase_free(after);
  const auto neighbour = find_free(joins_before ? before : after);
  if (joins_after) join_next(block);
  if (joins_before) join_next(before);
  replace_free(neighbour, joins_before ? before : block);
}

std::vector<std::vector<CachingAllocator::Piece>> CachingAllocator::segments() const {
  std::vector<std::vector<Piece>> result;
  for (const Node& first : nodes_) {
    if (first.piece.bytes == 0 || first.before >= 0) continue;
    std::vector<Piece>& segment = result.emplace_back(1, first.piece);
    for (Block next = first.after; next >= 0; next = nodes_[next].after)
      segment.push_back(nodes_[next].piece);
    if (expandable_) segment.pop_back();  // the end, never mapped
  }
  std::ranges::sort(result, {}, [](const auto& segment) {
    return segment.empty() ? 0 : segment.front().address;
  });
  return result;
}

std::vector<std::int64_t> CachingAllocator::state(std::int64_t now,
                                                  const std::vector<Block>& blocks) const {
  std::vector<std::int64_t> state = {reserved_};
  std::vector<Block> order;
  for (Block block = 0; block < static_cast<Block>(nodes_.size()); ++block) {
    if (nodes_[block].piece.bytes > 0) order.push_back(block);
  }
  std::ranges::sort(order, {}, [&](Block block) { return nodes_[block].piece.address; });
  std::vector<std::int64_t> place(nodes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Node& node = nodes_[order[i]];
    place[order[i]] = static_cast<std::int64_t>(i);
    state.insert(state.end(), {node.piece.bytes, static_cast<std::int64_t>(node.piece.state),
                               node.small ? 1 : 0, node.before < 0 ? 1 : 0});
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] >= 0) state.insert(state.end(), {static_cast<std::int64_t>(i), place[blocks[i]]});
  }
  std::vector<std::pair<std::int64_t, Block>> busy = busy_;
  std::ranges::sort(busy);
  for (const auto& [ready, block] : busy) state.insert(state.end(), {ready - now, place[block]});
  return state;
}

CachingAllocator::Block CachingAllocator::add(Piece piece, bool small, Block before, Block after) {
  auto block = static_cast<Block>(nodes_.size());
  if (spare_.empty()) {
    nodes_.emplace_back();
  } else {
    block = spare_.back();
    spare_.pop_back();
  }
  nodes_[block] = {piece, small, before, after};
  if (before >= 0) nodes_[before].after = block;
  if (after >= 0) nodes_[after].before = block;
  return block;
}

/// Adds what follows a block to it; neither stands in a set.
void CachingAllocator::join_next(Block block) {
  const Block next = nodes_[block].after;
  piece(block).bytes += piece(next).bytes;
  nodes_[block].after = nodes_[next].after;
  if (nodes_[block].after >= 0) nodes_[nodes_[block].after].before = block;
  nodes_[next] = {};
  spare_.push_back(next);
}

void CachingAllocator::insert_free(Block block) {
  FreeBlocks& free = pool(nodes_[block].small).free;
  const FreeBlock entry = entry_of(block);
  free.insert(std::lower_bound(free.begin(), free.end(), entry), entry);
}

CachingAllocator::FreeBlocks::iterator CachingAllocator::find_free(Block block) {
  FreeBlocks& free = pool(nodes_[block].small).free;
  return std::lower_bound(free.begin(), free.end(), entry_of(block));
}

void CachingAllocator::erase_free(Block block) {
  pool(nodes_[block].small).free.erase(find_free(block));
}

/// Puts a block into the list of its pool, and takes another one out: only those between the two
/// are moved.
void CachingAllocator::replace_free(FreeBlocks::iterator old, Block block) {
  FreeBlocks& free = pool(nodes_[block].small).free;
  const FreeBlock entry = entry_of(block);
  if (entry < *old) {
    const auto place = std::lower_bound(free.begin(), old, entry);
    std::move_backward(place, old, std::next(old));
    *place = entry;
  } else {
    const auto behind = std::lower_bound(std::next(old), free.end(), entry);
    *std::move(std::next(old), behind, old) = entry;
  }
}

/// Leaves a block its first `bytes`; what is behind them becomes a block of state `rest`, in no
/// set.
CachingAllocator::Block CachingAllocator::split(Block block, std::int64_t bytes, State rest) {
  const Piece behind{piece(block).address + bytes, piece(block).bytes - bytes, rest};
  piece(block).bytes = bytes;
  return add(behind, nodes_[block].small, block, nodes_[block].after);
}

/// The same, in its set.
void CachingAllocator::cut(Block block, std::int64_t bytes, State rest) {
  const Block behind = split(block, bytes, rest);
  if (rest == State::free) insert_free(behind);
  if (rest == State::unmapped)
    pool(nodes_[block].small).unmapped.emplace(piece(behind).address, behind);
}

/// The end of the list if there is none. A block that can grow counts as large as it can become, so
/// others that are large enough go before it.
CachingAllocator::FreeBlocks::iterator CachingAllocator::best_fit(std::int64_t bytes, bool small) {
  FreeBlocks& free = pool(small).free;
  auto found = std::lower_bound(free.begin(), free.end(), FreeBlock{bytes, 0, 0});
  if (found == free.end()) return found;
  const auto could_be = [&](Block block) {
    const Block next = nodes_[block].after;
    const bool grows = next >= 0 && piece(next).state == State::unmapped;
    return piece(block).bytes + (grows ? piece(next).bytes : 0);
  };
  for (auto next = std::next(found); expandable_ && next != free.end(); found = next++) {
    if (could_be(next->block) >= could_be(found->block)) break;
  }
  return found;
}

CachingAllocator::Block CachingAllocator::new_segment(std::int64_t bytes, bool small) {
  if (reserved_ + bytes > limit_) release();
  take(bytes);
  const Block block = add({next_address_, bytes, State::free}, small, -1, -1);
  next_address_ += bytes;
  return block;
}

/// Maps what is missing behind free memory, so that one block holds `bytes`.
CachingAllocator::Block CachingAllocator::expand(std::int64_t bytes, bool small) {
  Block block = place_to_expand(bytes, small);
  if (reserved_ + to_be_mapped(block, bytes) > limit_) {
    release();
    block = place_to_expand(bytes, small);
  }
  take(to_be_mapped(block, bytes));
  if (piece(block).state == State::unmapped) {
    map_begin(block, bytes);
  } else {
    erase_free(block);
  }
  for (Block next = nodes_[block].after; piece(block).bytes < bytes; next = nodes_[block].after) {
    if (piece(next).state == State::unmapped) {
      map_begin(next, bytes - piece(block).bytes);
    } else {
      erase_free(next);
    }
    join_next(block);
  }
  const Block next = nodes_[block].after;
  if (piece(next).state == State::free) {
    erase_free(next);
    join_next(block);
  }
  return block;
}

/// The first run of memory that is free or not mapped and long enough, where something is not
/// mapped.
CachingAllocator::Block CachingAllocator::place_to_expand(std::int64_t bytes, bool small) {
  Pool& range = pool(small);
  if (range.base < 0) {
    range.base = next_address_;
    next_address_ += endless;
    range.unmapped.emplace(range.base, add({range.base, endless, State::unmapped}, small, -1, -1));
  }
  for (const auto& [address, unmapped] : range.unmapped) {
    const Block before = nodes_[unmapped].before;
    const Block place = before >= 0 && piece(before).state == State::free ? before : unmapped;
    std::int64_t room = 0;
    for (Block b = place; b >= 0 && piece(b).state != State::live && room < bytes;
         b = nodes_[b].after)
      room += piece(b).bytes;
    if (room >= bytes) return place;
  }
  throw BrokenPromise("the addresses of an expandable pool never end");
}

std::int64_t CachingAllocator::to_be_mapped(Block place, std::int64_t bytes) const {
  std::int64_t mapped = 0;
  for (std::int64_t held = 0; held < bytes; place = nodes_[place].after) {
    const Node& node = nodes_[place];
    std::int64_t gained = node.piece.bytes;
    if (node.piece.state == State::unmapped) {
      gained = std::min(gained, round_up(bytes - held, page_of(node.small)));
      mapped += gained;
    }
    held += gained;
  }
  return mapped;
}

/// Maps whole pages at the begin of a block, as `bytes` need. They are free, and in no set.
void CachingAllocator::map_begin(Block block, std::int64_t bytes) {
  pool(nodes_[block].small).unmapped.erase({piece(block).address, block});
  const std::int64_t pages = round_up(bytes, page_of(nodes_[block].small));
  if (pages < piece(block).bytes) cut(block, pages, State::unmapped);
  piece(block).state = State::free;
}

void CachingAllocator::take(std::int64_t bytes) {
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

void CachingAllocator::release() {
  advance(std::numeric_limits<std::int64_t>::max());
  const std::int64_t before = reserved_;
  for (Pool& pool : pools_) expandable_ ? release_pages(pool) : release_segments(pool);
  if (reserved_ < before) ++releases_;
}

void CachingAllocator::release_segments(Pool& pool) {
  for (auto entry = pool.free.begin(); entry != pool.free.end();) {
    const Block block = entry->block;
    if (nodes_[block].before >= 0 || nodes_[block].after >= 0) {
      ++entry;
      continue;
    }
    reserved_ -= piece(block).bytes;
    nodes_[block] = {};
    spare_.push_back(block);
    entry = pool.free.erase(entry);
  }
}

/// All pages that lie in free blocks as a whole.
void CachingAllocator::release_pages(Pool& pool) {
  std::vector<Block> blocks;
  for (const auto& [bytes, address, block] : pool.free) blocks.push_back(block);
  for (const Block block : blocks) {
    const std::int64_t page = page_of(nodes_[block].small);
    const std::int64_t offset = piece(block).address - pool.base;
    const std::int64_t begin = round_up(offset, page);
    const std::int64_t end = (offset + piece(block).bytes) / page * page;
    if (begin < end) unmap(block, begin - offset, end - offset);
  }
}

/// Takes the bytes from `begin` to `end` of a free block away from it.
void CachingAllocator::unmap(Block block, std::int64_t begin, std::int64_t end) {
  Pool& range = pool(nodes_[block].small);
  erase_free(block);
  if (end < piece(block).bytes) cut(block, end, State::free);
  Block gone = block;
  if (begin > 0) {
    cut(block, begin, State::unmapped);
    insert_free(block);
    gone = nodes_[block].after;
  } else {
    piece(block).state = State::unmapped;
    range.unmapped.emplace(piece(block).address, block);
  }
  reserved_ -= end - begin;
  const Block after = nodes_[gone].after;
  if (piece(after).state == State::unmapped) {
    range.unmapped.erase({piece(after).address, after});
    join_next(gone);
  }
  const Block before = nodes_[gone].before;
  if (before >= 0 && piece(before).state == State::unmapped) {
    range.unmapped.erase({piece(gone).address, gone});
    join_next(before);
  }
}

}  // namespace stratagem::sim
