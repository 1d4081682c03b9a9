// Compares what ranks are about to do before they start, and makes them fail together.
#pragma once

#include <functional>
#include <string>

#include "kernels/ranks/communicator.hpp"

namespace stratagem::commands {

/// Refuses ranks of which one has another `text` than rank 0: that throws an InputError that says
/// which rank was told what, the others calibrate::AnotherRankFailed. Texts longer than a line are
/// told apart by a hash of them.
void expect_alike(kernels::Communicator& ranks, const std::string& what, const std::string& text);

/// Does `step` on all ranks: where it throws on some, the first of these throws what it threw, and
/// all others calibrate::AnotherRankFailed. A step must not communicate.
void all_or_none(kernels::Communicator& ranks, const std::function<void()>& step);

}  // namespace stratagem::commands
