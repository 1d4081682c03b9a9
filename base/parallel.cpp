// A thread takes the next index when it has done one.
#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace stratagem {

int processors() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                    const std::function<void(std::size_t)>& tell) {
  std::atomic<std::size_t> next = 0, done = 0;
  std::vector<std::exception_ptr> errors(count);
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
      const std::size_t now = ++done;
      if (tell) tell(now);
    }
  };
  {
    std::vector<std::jthread> others;
    const auto most = std::min<std::size_t>(count, static_cast<std::size_t>(std::max(1, threads)));
    for (std::size_t i = 1; i < most; ++i) others.emplace_back(take);
    take();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace stratagem
