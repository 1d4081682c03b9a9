// The stream of a copy follows from where it begins and ends.
#include "lowering/residency/copy_task.hpp"

#include <utility>

namespace stratagem::lowering {

using cost::CollectiveKind;
using program::Stream;

program::Task copy_task(Groups& groups, CollectiveKind kind, std::string name, Bytes bytes) {
  program::Task task{};
  task.name = std::move(name);
  task.work = program::Collective{.kind = kind, .group = groups.alone(), .payload = bytes};
  task.stream = kind == CollectiveKind::to_host       ? Stream::copy_out
                : kind == CollectiveKind::from_host   ? Stream::copy_in
                : kind == CollectiveKind::from_drives ? Stream::read_drives
                                                      : Stream::write_drives;
  return task;
}

program::Slot staging_slot(int tensor, Bytes bytes) {
  return {.name = "staging",
          .tensor = tensor,
          .bytes = bytes,
          .category = program::Category::staged,
          .place = program::Residence::host};
}

}  // namespace stratagem::lowering
