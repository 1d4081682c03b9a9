// Compares what ranks tell of themselves.
#include "calibrate/measure/ranks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <vector>

#include "base/input_error.hpp"

namespace stratagem::calibrate {
namespace {

/// As bytes, so that ranks of different programs can still read each other's.
struct Introduction {
  std::array<char, 256> host{}, processor{}, arguments{};
  std::array<char, 24> program{};  ///< a hash of its bytes
  int cores = 0;
};

template <std::size_t Size>
void note(std::array<char, Size>& place, const std::string& text) {
  std::memcpy(place.data(), text.data(), std::min(text.size(), Size - 1));
}

/// FNV-1a of the running program: enough to tell builds apart.
std::string program_hash() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 14695981039346656037U;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0)
    for (std::streamsize i = 0; i < file.gcount(); ++i)
      hash =
          (hash ^ static_cast<unsigned char>(block[static_cast<std::size_t>(i)])) * 1099511628211U;
  return std::to_string(hash);
}

std::vector<Introduction> introductions(kernels::Communicator& ranks, const Machine& machine,
                                        const std::string& arguments) {
  Introduction mine{.cores = machine.cores};
  note(mine.host, machine.host);
  note(mine.processor, machine.processor);
  note(mine.arguments, arguments);
  note(mine.program, program_hash());
  std::vector<Introduction> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// Throws InputError for the first rank that is not as rank 0.
void check_alike(const std::vector<Introduction>& all) {
  const Introduction& first = all.front();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const Introduction& other = all[rank];
    const auto same = [&](const char* what, const auto& expected, const auto& found) {
      if (expected != found)
        throw InputError("", "rank " + std::to_string(rank),
                         std::string(what) + " of rank 0, " + expected.data(), found.data());
    };
    same("the arguments", first.arguments, other.arguments);
    same("the processor", first.processor, other.processor);
    same("the program (a hash of it)", first.program, other.program);
  }
}

/// Ranks by server, of which none may have more than cores.
std::map<std::string, int> by_server(const std::vector<Introduction>& all) {
  std::map<std::string, int> servers;
  for (const Introduction& rank : all) ++servers[rank.host.data()];
  for (const Introduction& rank : all) {
    const int ranks = servers[rank.host.data()];
    if (ranks > rank.cores)
      throw InputError(
          "", "", std::to_string(rank.cores) + " ranks at most on the cores of " + rank.host.data(),
          std::to_string(ranks) + ", which would take turns");
  }
  return servers;
}

}  // namespace

void together(kernels::Communicator& ranks, const std::function<void()>& step) {
  std::exception_ptr error;
  try {
    step();
  } catch (const kernels::CommunicationError&) {
    throw;  // nobody can be told
  } catch (...) {
    error = std::current_exception();
  }
  std::array<double, 1> failed = {error ? 1.0 : 0.0};
  ranks.all_reduce(kernels::Reduction::maximum, std::span<double>(failed));
  if (error) std::rethrow_exception(error);
  if (failed[0] > 0) throw AnotherRankFailed{};
}

void on_first(kernels::Communicator& ranks, const std::function<void()>& step) {
  together(ranks, [&] {
    if (ranks.rank() == 0) step();
  });
}

Machine machine_of(kernels::Communicator& ranks, const std::string& arguments) {
  Machine machine = this_machine();
  const std::vector<Introduction> all = introductions(ranks, machine, arguments);
  on_first(ranks, [&] {
    check_alike(all);
    static_cast<void>(by_server(all));
  });
  const auto fewest = std::ranges::min_element(all, {}, &Introduction::cores);
  machine.ranks = ranks.size();
  machine.servers = static_cast<int>(by_server(all).size());
  machine.cores = fewest->cores;
  return machine;
}

}  // namespace stratagem::calibrate
