// JSON that was read, as JSON to be written.
#pragma once

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"

namespace stratagem {

/// A value with everything below it, layers merged; marks all of it as read.
Json copy_of(const JsonReader& reader);

}  // namespace stratagem
