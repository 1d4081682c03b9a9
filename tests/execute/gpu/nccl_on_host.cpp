// Looks at GPUs' memory as what it is here.
#include "tests/execute/gpu/nccl_on_host.hpp"

#include <stdexcept>

#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::kernels {
namespace {

std::span<float> floats(DeviceTarget values) {
  expects(values.element == DeviceElement::fp32, "messages are of fp32");
  return {static_cast<float*>(values.data), values.count};
}
In<float> floats(DeviceSource values) {
  expects(values.element == DeviceElement::fp32, "messages are of fp32");
  return {static_cast<const float*>(values.data), values.count};
}

class OnHost final : public DeviceCommunicator {
 public:
  explicit OnHost(Communicator& host) : host_(host) {}

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  std::unique_ptr<DeviceCommunicator> group(const std::vector<int>& /*ranks*/) override {
    throw std::logic_error("every group asks for its own");
  }
  void wait(const Stream& /*stream*/) override {}
  void barrier(const Stream& /*stream*/) override { host_.barrier(); }

 protected:
  void do_all_reduce(const Stream& /*stream*/, Reduction reduction, DeviceTarget values) override {
    note("all-reduce");
    host_.all_reduce(reduction, floats(values));
  }
  void do_all_gather(const Stream& /*stream*/, DeviceSource part, DeviceTarget whole) override {
    note("all-gather");
    host_.all_gather(floats(part), floats(whole));
  }
  void do_reduce_scatter(const Stream& /*stream*/, Reduction reduction, DeviceSource whole,
                         DeviceTarget part) override {
    note("reduce-scatter");
    host_.reduce_scatter(reduction, floats(whole), floats(part));
  }
  void do_all_to_all(const Stream& /*stream*/, DeviceSource out, DeviceTarget in) override {
    note("all-to-all");
    host_.all_to_all(floats(out), floats(in));
  }
  void do_broadcast(const Stream& /*stream*/, int /*root*/, DeviceTarget /*values*/) override {
    throw std::logic_error("no plan broadcasts");
  }
  void do_reduce(const Stream& /*stream*/, Reduction /*reduction*/, int /*root*/,
                 DeviceTarget /*values*/) override {
    throw std::logic_error("no plan reduces to one rank");
  }
  void do_exchange(const Stream& /*stream*/, const std::vector<DeviceSent>& /*sent*/,
                   const std::vector<DeviceReceived>& /*received*/) override {
    throw std::logic_error("messages between stages go through the host");
  }

 private:
  static void note(const std::string& operation) {
    const int number = nccl_on_host().moved++;
    if (number == nccl_on_host().fails_at)
      throw CommunicationError("NCCL " + operation + ": unhandled system error");
  }

  Communicator& host_;
};

}  // namespace

NcclOnHost& nccl_on_host() {
  static NcclOnHost instance;
  return instance;
}

std::string nccl_version() { return "0.0.0"; }

std::unique_ptr<DeviceCommunicator> nccl_communicator(Communicator& host, const Stream& /*stream*/,
                                                      GivingUp /*giving_up*/) {
  return std::make_unique<OnHost>(host);
}

}  // namespace stratagem::kernels
