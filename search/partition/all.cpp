// The table of searchers for how a plan divides its model, in the order of help.
#include "base/table.hpp"
#include "search/partition/searcher.hpp"

namespace stratagem::search {

// clang-format off
STRATAGEM_TABLE(searchers, Searcher,
    balanced,
    pipedream,
    terapipe)
// clang-format on

}  // namespace stratagem::search
