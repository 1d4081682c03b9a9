// NCCL's version as text: in all builds, since logs have it too.
#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::kernels {

std::string nccl_version_text(int code) {
  if (code <= 0) return "";
  const int major = code < 10'000 ? code / 1000 : code / 10'000;
  const int minor = (code < 10'000 ? code % 1000 : code % 10'000) / 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

}  // namespace stratagem::kernels
