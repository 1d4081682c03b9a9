// GPUs: which there are, their memory, streams of work on them, and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::kernels {

/// What CUDA or cublasLt refused: the call, and their words for why.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A GPU has too little memory left.
struct DeviceOutOfMemory : DeviceError {
  using DeviceError::DeviceError;
};

/// A GPU, as CUDA describes it.
struct Device {
  int index = 0;
  std::string id;  ///< its UUID in hexadecimal digits: the same in all processes
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  Bytes memory, l2_cache;
  Bytes shared_memory;                 ///< that one block may ask for
  double clock = 0, memory_clock = 0;  ///< highest, in Hz; 0 where CUDA does not tell

  [[nodiscard]] bool at_least(int wanted_major, int wanted_minor = 0) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
};

/// All GPUs that CUDA sees: none without a driver, or in a build without CUDA. What else is
/// declared here, except the next, has a definition only in builds with CUDA.
std::vector<Device> devices();

/// Why there are none, in CUDA's words; "" if there are some.
std::string why_no_devices();

/// What a GPU has left, of which CUDA itself takes some with the first stream.
Bytes memory_available(int device);

/// CUDA's versions: "13.0" of the runtime that this program was built with, and of what the driver
/// can do.
std::string runtime_version();
std::string driver_version();

/// Elements in the memory of a GPU, which somebody else owns. Like std::span, but not to be looked
/// into from the host.
template <typename T>
class DeviceSpan {
 public:
  DeviceSpan() = default;
  DeviceSpan(T* data, std::size_t size) : data_(data), size_(size) {}
  /// What may be written may be read.
  template <typename Other>
  requires std::is_same_v<const Other, T> DeviceSpan(const DeviceSpan<Other>& other)
      : data_(other.data()), size_(other.size()) {}

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] DeviceSpan subspan(std::size_t first, std::size_t count) const {
    return {data_ + first, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// What kernels on a GPU read and write.
template <typename T>
using DeviceIn = DeviceSpan<const T>;
template <typename T>
using DeviceOut = DeviceSpan<T>;

/// Work on the first GPU, or another, one kernel after another. Keeps what kernels need beside
/// their operands: scratch memory, cublasLt's workspace and its chosen algorithms. Throws
/// DeviceError.
class Stream {
 public:
  explicit Stream(int device = 0);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Waits until all that was asked for is done; throws what went wrong meanwhile.
  void synchronise() const;

  [[nodiscard]] const Device& device() const;

  struct Inside;  ///< for the sources of kernels/
  [[nodiscard]] Inside& inside() const { return *inside_; }

 private:
  std::unique_ptr<Inside> inside_;
};

/// A moment in a stream.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream);
  /// Waits until the moment has come.
  void wait() const;
  /// From an earlier one to this, both of which have come; CUDA resolves about half a microsecond.
  [[nodiscard]] Seconds since(const Event& earlier) const;

 private:
  void* event_ = nullptr;
};

/// Memory on the GPU of the last Stream made, or on the host where a GPU reaches it quickly
/// (pinned). Throws DeviceOutOfMemory.
enum class Place { device, pinned };
void* allocate(Place place, std::size_t bytes);
void release(Place place, void* memory) noexcept;

/// Copies on the stream, from anywhere to anywhere; between the GPU and memory that is not pinned
/// the host waits.
void copy_bytes(const Stream& stream, const void* from, void* to, std::size_t bytes);
/// Sets every byte.
void fill_bytes(const Stream& stream, void* memory, unsigned char value, std::size_t bytes);

/// Elements on a GPU, or pinned on the host, owned.
template <typename T, Place place>
class PlacedArray {
 public:
  PlacedArray() = default;
  explicit PlacedArray(std::size_t size)
      : data_(static_cast<T*>(allocate(place, size * sizeof(T)))), size_(size) {}
  PlacedArray(PlacedArray&& other) noexcept { swap(other); }
  PlacedArray& operator=(PlacedArray&& other) noexcept {
    swap(other);
    return *this;
  }
  PlacedArray(const PlacedArray&) = delete;
  PlacedArray& operator=(const PlacedArray&) = delete;
  ~PlacedArray() { release(place, data_); }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  operator DeviceSpan<T>() const { return {data_, size_}; }  // NOLINT(google-explicit-constructor)
  operator DeviceSpan<const T>() const {                     // NOLINT(google-explicit-constructor)
    return {data_, size_};
  }
  [[nodiscard]] DeviceSpan<T> span() const { return *this; }

 private:
  void swap(PlacedArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};
template <typename T>
using DeviceArray = PlacedArray<T, Place::device>;
template <typename T>
using PinnedArray = PlacedArray<T, Place::pinned>;

/// The same elements on the GPU. `values` may go once this returns.
template <typename T>
DeviceArray<T> on_device(const Stream& stream, const std::vector<T>& values) {
  DeviceArray<T> result(values.size());
  copy_bytes(stream, values.data(), result.data(), values.size() * sizeof(T));
  stream.synchronise();
  return result;
}

/// The same elements on the host, once the stream has come so far.
template <typename T>
std::vector<T> on_host(const Stream& stream, const DeviceArray<T>& values) {
  std::vector<T> result(values.size());
  copy_bytes(stream, values.data(), result.data(), values.size() * sizeof(T));
  stream.synchronise();
  return result;
}

}  // namespace stratagem::kernels
