// The processor that the program runs on, as a rank's engine.
#pragma once

#include <memory>

#include "execute/engine.hpp"

namespace stratagem::execute {

/// All but computing: values lie in the memory of this process. In any type, so that tests can
/// round what a GPU would.
template <typename T>
class HostMemory : public Engine<T> {
 public:
  using Host = OnHost<T>;

  Memory allocate(std::size_t bytes) override;
  void clear(void* memory, std::size_t bytes) override;
  void copy(const Value<T>& from, const Value<T>& to) override;
  void add(const Value<T>& from, const Value<T>& to) override;
  void copy_part(const Value<T>& whole, const Value<T>& part) override;
  void put(const Value<T>& part, const Value<T>& whole, bool adds, model::Combine combine) override;
  bool finite(const Value<T>& value) override;
  Shared<Host> on_host(const Shared<T>& value) override;
  Shared<T> from_host(const Shared<Host>& value, List list) override;
  void note(const Value<T>& value, double weight, std::size_t sum) override;
  std::vector<double> noted(std::size_t sums) override;
  std::span<Host> open(const Value<T>& value, std::vector<Host>& room) override;
  std::span<Host> place(const Value<T>& value, std::vector<Host>& room) override;
  void close(std::span<const Host> message, const Value<T>& value) override;
  void pack(const Value<T>& whole, const Region& region, Host* to) override;
  void unpack(const Host* from, const Region& region, const Value<T>& whole, bool adds) override;
  void start(Recording& recording, std::size_t tasks) override { recording.start(tasks); }
  void begin(Recording& recording, std::size_t task) override { recording.begin(task); }
  void end(Recording& recording, std::size_t task) override { recording.end(task); }
  void finish(Recording& /*recording*/) override {}

 private:
  std::vector<double> noted_;
};

/// In fp32 or fp64, by the kernels of processors.
template <typename T>
class HostEngine final : public HostMemory<T> {
 public:
  void apply(const Application<T>& application) override;
  void step(const Step<T>& step) override;
};

}  // namespace stratagem::execute
