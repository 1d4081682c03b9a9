// The table of formats.
#include "base/table.hpp"
#include "imports/format.hpp"

namespace stratagem::imports {

// clang-format off
STRATAGEM_TABLE(formats, Format,
    deepspeed,
    hugging_face,
    megatron,
    nemo,
    torchtitan)
// clang-format on

}  // namespace stratagem::imports
