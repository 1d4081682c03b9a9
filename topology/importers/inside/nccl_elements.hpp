// Elements of a topology file of NCCL: attributes, GPUs, adapters.
#pragma once

#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

namespace stratagem::topology::importers {

inline constexpr int most_links = 1000;
inline constexpr int most_rate = 1'000'000'000;  ///< MB/s of a link, Mb/s of an adapter

/// Reads attributes of elements; throws InputError that names the file and the element.
class NcclFile {
 public:
  explicit NcclFile(const std::string& file) : file_(file) {}

  [[noreturn]] void refuse(const pugi::xml_node& where, const std::string& expected,
                           const std::string& found) const;
  /// A whole number; `otherwise` where the attribute is missing or empty.
  int whole(const pugi::xml_node& element, const char* name, std::optional<int> otherwise) const;
  /// A count of links, or a rate: from 1 to what no machine exceeds.
  int positive(const pugi::xml_node& element, const char* name, std::optional<int> otherwise,
               int most) const;

 private:
  const std::string& file_;
};

/// A GPU or an adapter.
struct Numbered {
  int host = 0;
  int dev = 0;
  pugi::xml_node element;
  pugi::xml_node cpu;
};

/// GPUs and adapters in the order of their hosts and numbers; elements in the order of the file.
struct NcclDevices {
  std::vector<Numbered> gpus;
  std::vector<Numbered> nets;  ///< the fastest: slower ones are there for something else
  int fastest = 0;             ///< of the adapters, in Mb/s
  std::string dropped;         ///< names of slower adapters
  std::map<std::string, int> hosts;

  /// The number of a processor's host.
  int host_of(const pugi::xml_node& cpu);
};

/// Throws InputError for a system without a GPU.
NcclDevices devices_of(const NcclFile& file, const pugi::xml_node& system);

}  // namespace stratagem::topology::importers
