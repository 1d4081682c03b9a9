// Runs experiments on a GPU one after another, and writes all that is known after each.
#include "calibrate/measure/measure_cuda.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "calibrate/datasheet.hpp"
#include "calibrate/fit/nccl.hpp"
#include "calibrate/measure/cuda_collectives.hpp"
#include "calibrate/measure/cuda_experiments.hpp"
#include "calibrate/measure/gpu_file.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/ranks.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/ranks/nccl_communicator.hpp"
#include "kernels/ranks/own_gpu.hpp"

namespace stratagem::calibrate {
namespace {

using kernels::Stream;

std::vector<std::string> types_of(const kernels::Device& device) {
  if (!device.at_least(8)) return {"fp16", "fp32"};
  return {"fp16", "bf16", "fp32"};
}

GpuRates rates_of(const std::string& datasheet, const Stream& stream,
                  const CudaStopwatch& stopwatch) {
  GpuRates rates;
  if (!datasheet.empty()) {
    const Datasheet sheet = read_datasheet(datasheet);
    for (const auto& [type, peak] : sheet.peak) rates.peak[type] = peak.value;
    for (const std::string& type : types_of(stream.device())) {
      if (!rates.peak.contains(type))
        throw InputError(datasheet, "/peak/" + type, "a rate of this type, which is measured", "");
    }
    rates.memory = sheet.memory.bandwidth.value;
    return rates;
  }
  const auto time_of = [&](const CudaExperiment& one) {
    const auto timed = stopwatch.time_of(one.launch, {.budget = Seconds{2}});
    if (timed) return timed->median;
    throw kernels::DeviceError("the host takes longer to ask for a " + one.what.name() +
                               " than the GPU to fill memory: no rate can be measured");
  };
  for (const std::string& type : types_of(stream.device())) {
    const CudaExperiments of = cuda_experiments(stream, type, Sweep::quick);
    rates.peak[type] = of.peak.what.flops / time_of(of.peak);
    rates.memory = of.bandwidth.what.bytes / time_of(of.bandwidth);
  }
  return rates;
}

std::string more_beside(const std::string& file) {
  return std::filesystem::path(file).replace_extension(".more.json").string();
}

/// An experiment whose time is all that is kept.
Experiment time_alone(const char* kind) {
  return {.kind = kind,
          .operation = "",
          .columns = {},
          .sizes = {},
          .transposes = "",
          .flops = {},
          .bytes = {},
          .prepare = {}};
}

/// This rank's GPU, one for each rank and all of one type.
int own_gpu(kernels::Communicator& ranks) {
  const std::vector<kernels::VisibleGpus> all = kernels::visible_gpus(ranks);
  on_first(ranks, [&] { static_cast<void>(kernels::gpus_of_ranks(all)); });
  const int gpu = kernels::gpus_of_ranks(all).at(static_cast<std::size_t>(ranks.rank()));
  std::array<char, 256> mine{};
  const std::string name = kernels::devices().at(static_cast<std::size_t>(gpu)).name;
  std::memcpy(mine.data(), name.data(), std::min(name.size(), mine.size() - 1));
  std::vector<std::array<char, 256>> names(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(names)));
  on_first(ranks, [&] {
    for (std::size_t rank = 1; rank < names.size(); ++rank)
      if (names[rank] != names[0])
        throw InputError("", "rank " + std::to_string(rank),
                         "the GPU of rank 0, " + std::string(names[0].data()), names[rank].data());
  });
  return gpu;
}

/// What several ranks need beside GPUs: NCCL, and a preset that has as many GPUs in a server. The
/// version of NCCL, "" for one rank.
std::string check_collectives(const std::string& cluster, const Machine& machine,
                              kernels::Communicator& ranks) {
  if (ranks.size() == 1) return "";
  on_first(ranks, [&] {
    const int gpus = server_named(cluster).gpus();
    if (machine.ranks_of_server() > gpus)
      throw InputError("", "--cluster",
                       "at most the " + std::to_string(gpus) + " GPUs of a " + cluster,
                       std::to_string(machine.ranks_of_server()) + " ranks on a server");
  });
  std::string version;
  together(ranks, [&] { version = kernels::nccl_version(); });
  return version;
}

/// Measures on all ranks, and keeps on the first.
class CudaMeasuring {
 public:
  CudaMeasuring(const CudaAssignment& assignment, kernels::World& world,
                const std::function<void(const Progress&)>& tell)
      : assignment_(assignment),
        world_(world),
        ranks_(world.all()),
        machine_(machine_of(
            ranks_, assignment.file + assignment.datasheet + assignment.only + assignment.cluster)),
        stream_(own_gpu(ranks_)),
        tell_(tell) {}

  std::size_t all() {
    open(check_collectives(assignment_.cluster, machine_, ranks_));
    {
      const CudaStopwatch stopwatch(stream_);
      measure_launches(stopwatch);
      measure_copies(stopwatch);
      for (const std::string& type : types_of(stream_.device())) measure_kernels(type, stopwatch);
    }
    measure_collectives();
    on_first(ranks_, [&] { check_only(assignment_.only, there_is_); });
    return done_;
  }

 private:
  [[nodiscard]] Effort effort() const {
    return {.budget = assignment_.sweep == Sweep::quick ? Seconds{0.1} : Seconds{0.5}};
  }

  void open(const std::string& nccl) {
    GpuRates rates;
    {
      const CudaStopwatch stopwatch(stream_);
      const auto find = [&] { rates = rates_of(assignment_.datasheet, stream_, stopwatch); };
      if (!assignment_.datasheet.empty()) on_first(ranks_, find);
      together(ranks_, find);
    }
    const std::string note =
        (assignment_.datasheet.empty()
             ? "peak and memory_bandwidth are a large product's and a large sum's rates, measured. "
             : "peak and memory_bandwidth are those of " + assignment_.datasheet + ". ") +
        std::string(
            "Times are medians, spread half of the 95 % confidence interval relative to "
            "them. ") +
        (ranks_.size() == 1 ? "" : "A GPU a rank, all at once; the slowest rank's counts.");
    const GpuCollectiveTables tables(assignment_.cluster, nccl);
    if (ranks_.rank() != 0) return;
    const GpuFileHeader header{
        stream_.device(), rates,
        "CUDA " + kernels::runtime_version() + ", driver for " + kernels::driver_version(), note,
        machine_};
    fitted_.emplace(assignment_.file, header, tables);
    more_.emplace(more_beside(assignment_.file), header, tables);
  }

  /// Is this to be measured? Says so where it is.
  bool begins(const Experiment& what, const std::string& type, std::size_t all) {
    there_is_.push_back(what);
    there_is_.back().prepare = {};
    if (!what.name().starts_with(assignment_.only)) return false;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    const double each = done_ == 0 ? 0 : spent.count() / static_cast<double>(done_);
    all = std::max(all, done_ + 1);
    if (fitted_)
      tell_({.done = done_,
             .all = all,
             .left = Seconds{each * static_cast<double>(all - done_)},
             .name = (type.empty() ? "" : type + " ") + what.name()});
    ++done_;
    return true;
  }

  /// Keeps the slowest rank's time, or says that a rank has none.
  void keep(std::optional<GpuFile>& file, const Experiment& what, const std::string& type,
            const std::optional<Timed>& mine) {
    constexpr Seconds never{std::numeric_limits<double>::infinity()};
    const Timed timed = slowest(mine.value_or(Timed{.median = never}), ranks_);
    on_first(ranks_, [&] {
      if (timed.median == never)
        file->leave_out(what, type);
      else if (what.columns.empty())
        file->add_time(what, timed);
      else
        file->add(what, type, timed);
    });
  }

  /// Copies both ways through memory that is pinned, and within the GPU.
  void measure_copies(const CudaStopwatch& stopwatch) {
    constexpr std::size_t largest = std::size_t{256} << 20;
    const kernels::PinnedArray<std::byte> host(largest);
    const kernels::DeviceArray<std::byte> device(largest), other(largest);
    const auto measure = [&](const char* way, const std::byte* from, std::byte* into,
                             std::size_t bytes) {
      Experiment what = time_alone("copy");
      what.operation = way;
      what.columns = {"size"};
      what.sizes = {static_cast<std::int64_t>(bytes)};
      what.bytes = Bytes{static_cast<double>(bytes)};
      if (!begins(what, "", 0)) return;
      keep(more_, what, "",
           stopwatch.time_of([&] { kernels::copy_bytes(stream_, from, into, bytes); }, effort()));
    };
    for (std::size_t bytes = 4096; bytes <= largest; bytes *= 8) {
      measure("host to device", host.data(), device.data(), bytes);
      measure("device to host", device.data(), host.data(), bytes);
      measure("within the device", device.data(), other.data(), bytes);
    }
  }

  /// Tiny kernels: from one to the next on the GPU, and what the host takes to ask for one.
  void measure_launches(const CudaStopwatch& stopwatch) {
    const kernels::DeviceArray<float> one(1);
    kernels::fill_bytes(stream_, one.data(), 0, sizeof(float));
    constexpr int launches = 64;  // far fewer than a GPU's queue takes before it holds up the host
    const auto launch = [&] {
      for (int i = 0; i < launches; ++i) kernels::add<float>(stream_, one, one, one);
    };
    const auto each = [](std::optional<Timed> all) {
      if (all) all->median = all->median / launches;
      return all;
    };
    const Experiment gap = time_alone("kernel_gap"), asking = time_alone("host_launch");
    if (begins(gap, "", 0)) keep(fitted_, gap, "", each(stopwatch.time_of(launch, effort())));
    if (begins(asking, "", 0)) keep(fitted_, asking, "", each(host_time(launch)));
    stream_.synchronise();
  }

  /// What the host takes to ask, with nothing left to do on the GPU before: where its queue is full
  /// it would be the GPU's time.
  Timed host_time(const std::function<void()>& launch) {
    launch();
    const auto round = [&] {
      std::vector<Seconds> samples;
      for (int i = 0; i < effort().least; ++i) {
        stream_.synchronise();
        const auto begin = std::chrono::steady_clock::now();
        launch();
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        samples.emplace_back(spent.count());
      }
      return samples;
    };
    return time_of_rounds(round, effort(), ranks_);
  }

  /// How many there are in all is a guess from the first type's.
  void measure_kernels(const std::string& type, const CudaStopwatch& stopwatch) {
    const CudaExperiments of = cuda_experiments(stream_, type, assignment_.sweep);
    const std::size_t before = done_, of_type = of.all.size() + of.attention.size();
    for (std::size_t i = 0; i < of_type; ++i) {
      const bool fused = i >= of.all.size();
      const CudaExperiment& next = fused ? of.attention[i - of.all.size()] : of.all[i];
      if (!begins(next.what, next.type, before + of_type)) continue;
      keep(fitted_, next.what, next.type, stopwatch.time_of(next.launch, effort()));
    }
  }

  void measure_collectives() {
    if (ranks_.size() == 1) return;
    std::vector<GpuCollective> todo;
    for (const GpuGroups& groups : gpu_groups(assignment_.sweep, ranks_.size()))
      for (const GpuCollective& each : gpu_collectives(groups)) todo.push_back(each);
    std::optional<CudaCollectives> collectives;
    const std::size_t before = done_;
    for (const GpuCollective& next : todo) {
      if (!begins(experiment_of(next), "", before + todo.size())) continue;
      if (!collectives)
        collectives.emplace(ranks_, stream_,
                            kernels::GivingUp{.gone = [this] { return world_.gone(); }});
      const Timed timed = collectives->time_of(next, effort());
      on_first(ranks_, [&] { fitted_->add(next, timed); });
    }
  }

  const CudaAssignment& assignment_;
  kernels::World& world_;
  kernels::Communicator& ranks_;
  Machine machine_;
  Stream stream_;
  const std::function<void(const Progress&)>& tell_;
  std::optional<GpuFile> fitted_, more_;  ///< of rank 0
  std::vector<Experiment> there_is_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

std::size_t measure_cuda(const CudaAssignment& assignment, kernels::World& world,
                         const std::function<void(const Progress&)>& tell) {
  if (world.all().size() == 1 && kernels::devices().empty())
    throw kernels::DeviceError("no GPU: " + kernels::why_no_devices());
  return CudaMeasuring(assignment, world, tell).all();
}

}  // namespace stratagem::calibrate
