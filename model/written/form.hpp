// A model as data: what a file of a model says, tensor by tensor and operator by operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "base/options.hpp"
#include "model/graph.hpp"

namespace stratagem::model {

/// Of a dimension: a number, or so many for each sample of a micro-batch.
struct WrittenSize {
  std::int64_t size = 1;
  bool each_sample = false;
  friend bool operator==(const WrittenSize&, const WrittenSize&) = default;
};

struct WrittenTensor {
  std::string name;
  std::vector<WrittenSize> shape = {};
  std::optional<DataType> type = {};  ///< none: that of values in the training's precision
  Role role = Role::activation;
  bool frozen = false;  ///< of a parameter
  double filled = 1;    ///< see Tensor
  friend bool operator==(const WrittenTensor&, const WrittenTensor&) = default;
};

/// Operands by name: of the segment itself, or in full, with the segment's name before them.
struct WrittenOperator {
  std::string name;
  std::string kind;
  std::string annotation;
  std::vector<std::string> reads = {};
  std::vector<std::string> writes = {};
  std::int64_t window = 0;                       ///< see Operator
  std::vector<std::int64_t> documents = {};      ///< see Operator
  std::int64_t cached = 0;                       ///< see Operator
  std::int64_t image_rows = 0, window_side = 0;  ///< see ImageWindows
  friend bool operator==(const WrittenOperator&, const WrittenOperator&) = default;
};

/// What a segment that is repeated reads: of another segment the first time, then of the turn
/// before.
struct WrittenTaking {
  std::string name;
  std::string from;
  std::string then;
  friend bool operator==(const WrittenTaking&, const WrittenTaking&) = default;
};

struct WrittenSegment {
  std::string name;
  std::int64_t repeat = 0;  ///< 0: once, and the name has no number
  std::int64_t first = 0;   ///< number of the first turn
  std::vector<WrittenTaking> takes = {};
  std::vector<WrittenTensor> tensors = {};
  std::vector<WrittenOperator> operators = {};
  friend bool operator==(const WrittenSegment&, const WrittenSegment&) = default;
};

struct WrittenModel {
  std::int64_t tokens = 1;  ///< of a sample
  std::string loss;
  std::vector<WrittenSegment> segments;
  std::int64_t passes = 1;
  std::vector<WrittenTaking> recycled = {};  ///< `from` becomes the input `then` of the next pass
  friend bool operator==(const WrittenModel&, const WrittenModel&) = default;
};

/// The keys of such a file.
OptionList<WrittenModel> written_options();

/// What a file says. Throws InputError for a key that none has, too.
WrittenModel read_written(const JsonReader& file);

/// The graph of one micro-batch. Throws InputError with the path within the file.
Graph graph_of(const WrittenModel& model, std::int64_t batch, DataType values);

/// The forward pass of a model as such a file, from its graphs of one sample and of two, whose
/// values are fp16. `graph_of` makes the same of it.
std::string written(const Graph& one, const Graph& two);

}  // namespace stratagem::model
