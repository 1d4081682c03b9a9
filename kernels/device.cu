// Devices, memory, streams and events of CUDA's runtime.
#include "kernels/device.hpp"
#include "kernels/inside/stream.cuh"

namespace stratagem::kernels {
namespace {

double attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  STRATAGEM_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

std::string hexadecimal(const cudaUUID_t& id) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const char byte : id.bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

Device describe(int index) {
  cudaDeviceProp properties{};
  STRATAGEM_CHECK(cudaGetDeviceProperties(&properties, index));
  return {.index = index,
          .id = hexadecimal(properties.uuid),
          .name = properties.name,
          .major = properties.major,
          .minor = properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .memory = Bytes{static_cast<double>(properties.totalGlobalMem)},
          .l2_cache = Bytes{static_cast<double>(properties.l2CacheSize)},
          .shared_memory = Bytes{static_cast<double>(properties.sharedMemPerBlockOptin)},
          .clock = 1e3 * attribute(cudaDevAttrClockRate, index),
          .memory_clock = 1e3 * attribute(cudaDevAttrMemoryClockRate, index)};
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // what this call left behind is told now, not again later
  const std::string text = std::string(call) + ": " + cudaGetErrorString(result);
  if (result == cudaErrorMemoryAllocation) throw DeviceOutOfMemory(text);
  throw DeviceError(text);
}

std::vector<Device> devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return {};
  }
  std::vector<Device> result;
  for (int index = 0; index < count; ++index) result.push_back(describe(index));
  return result;
}

std::string why_no_devices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  return result == cudaSuccess ? "" : cudaGetErrorString(result);
}

Bytes memory_available(int device) {
  STRATAGEM_CHECK(cudaSetDevice(device));
  std::size_t left = 0, all = 0;
  STRATAGEM_CHECK(cudaMemGetInfo(&left, &all));
  return Bytes{static_cast<double>(left)};
}

std::string runtime_version() { return version_text(CUDART_VERSION); }

std::string driver_version() {
  int version = 0;
  STRATAGEM_CHECK(cudaDriverGetVersion(&version));
  return version_text(version);
}

Stream::Stream(int device) : inside_(std::make_unique<Inside>()) {
  STRATAGEM_CHECK(cudaSetDevice(device));
  inside_->device = describe(device);
  STRATAGEM_CHECK(cudaStreamCreateWithFlags(&inside_->stream, cudaStreamNonBlocking));
}

Stream::~Stream() {
  static_cast<void>(cudaStreamSynchronize(inside_->stream));
  static_cast<void>(cudaStreamDestroy(inside_->stream));
}

void Stream::synchronise() const { STRATAGEM_CHECK(cudaStreamSynchronize(inside_->stream)); }

const Device& Stream::device() const { return inside_->device; }

Event::Event() {
  cudaEvent_t event = nullptr;
  STRATAGEM_CHECK(cudaEventCreate(&event));
  event_ = event;
}

Event::~Event() { static_cast<void>(cudaEventDestroy(event_of(event_))); }

void Event::record(const Stream& stream) {
  STRATAGEM_CHECK(cudaEventRecord(event_of(event_), stream.inside().stream));
}

void Event::wait() const { STRATAGEM_CHECK(cudaEventSynchronize(event_of(event_))); }

Seconds Event::since(const Event& earlier) const {
  float milliseconds = 0;
  STRATAGEM_CHECK(cudaEventElapsedTime(&milliseconds, event_of(earlier.event_), event_of(event_)));
  return Seconds{1e-3 * static_cast<double>(milliseconds)};
}

void* allocate(Place place, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  if (place == Place::device)
    STRATAGEM_CHECK(cudaMalloc(&memory, bytes));
  else
    STRATAGEM_CHECK(cudaMallocHost(&memory, bytes));
  return memory;
}

void release(Place place, void* memory) noexcept {
  if (memory == nullptr) return;
  static_cast<void>(place == Place::device ? cudaFree(memory) : cudaFreeHost(memory));
}

void copy_bytes(const Stream& stream, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  STRATAGEM_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.inside().stream));
}

void fill_bytes(const Stream& stream, void* memory, unsigned char value, std::size_t bytes) {
  if (bytes == 0) return;
  STRATAGEM_CHECK(cudaMemsetAsync(memory, value, bytes, stream.inside().stream));
}

}  // namespace stratagem::kernels
