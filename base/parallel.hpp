// The same work for many indices, on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace stratagem {

/// As many as there are processors, at least one.
int processors();

/// Calls `work` with every index below `count`, each once, on at most `threads` threads, of which
/// the caller is one. Indices begin in ascending order. Returns when all are done; if any throw,
/// throws what the lowest of them threw. `tell` is called after each, from any thread, with the
/// number that is done.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                    const std::function<void(std::size_t)>& tell = {});

}  // namespace stratagem
