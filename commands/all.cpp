// The table of commands, in the order of --help.
#include "commands/all.hpp"

#include "base/table.hpp"

namespace stratagem::commands {

// clang-format off
STRATAGEM_TABLE(all, Command,
    simulate,
    search,
    order,
    partition,
    validate,
    execute,
    compare,
    explain,
    import_scenario,
    list,
    options,
    topology,
    calibrate,
    completion,
    man)
// clang-format on

}  // namespace stratagem::commands
