// The keys of a model's file, and the family that reads one.
#include <filesystem>
#include <memory>
#include <utility>

#include "base/input_error.hpp"
#include "model/operator_kinds.hpp"
#include "model/written/form.hpp"
#include "model/zoo/all.hpp"

namespace stratagem::model {
namespace {

constexpr std::int64_t most = 1'000'000'000'000;

/// "batch", "64 batch" or a number.
Format<WrittenSize> size_of_dimension() {
  const Json schema = Json::object().set(
      "anyOf", Json::array()
                   .push(Json::object().set("type", "integer").set("minimum", 1))
                   .push(Json::object().set("type", "string").set("pattern", "^([0-9]+ )?batch$")));
  return {{schema, "1 to 1000000000000, `batch`, or a multiple: `4 batch`"},
          [](const JsonReader& reader) -> WrittenSize {
            if (!reader.is_string()) return {.size = reader.between(1, most)};
            std::string text = reader.text();
            const std::string expected = "a number, \"batch\", or a multiple such as \"4 batch\"";
            if (!text.ends_with("batch")) reader.fail(expected);
            text.resize(text.size() - 5);
            if (text.empty()) return {.each_sample = true};
            if (text.back() != ' ') reader.fail(expected);
            text.pop_back();
            const bool digits = !text.empty() && text.size() < 13 && text.front() != '0' &&
                                text.find_first_not_of("0123456789") == std::string::npos;
            if (!digits) reader.fail(expected);
            return {.size = std::stoll(text), .each_sample = true};
          }};
}

OptionList<WrittenTensor> tensor_options() {
  using T = WrittenTensor;
  const auto type = choice<std::optional<DataType>>({{"values", std::nullopt},
                                                     {"fp32", DataType::fp32},
                                                     {"int64", DataType::int64},
                                                     {"int8", DataType::int8}});
  return {{"name", &T::name, text(), "within its segment", must_be_there},
          {"shape", &T::shape, list_of<WrittenSize>(size_of_dimension()),
           "in the order in which annotations name its dimensions", must_be_there},
          {"type", &T::type, type, "of its elements; values: that of the training's precision",
           "values"},
          {"role", &T::role,
           choice<Role>({{"activation", Role::activation},
                         {"input", Role::input},
                         {"cache", Role::cache},
                         {"parameter", Role::parameter},
                         {"statistic", Role::statistic},
                         {"mask", Role::mask}}),
           "what it is for; statistics and masks have no gradients; a cache stays from pass to "
           "pass, one for every micro-batch"},
          {"frozen", &T::frozen, flag(), "a parameter that is not trained"},
          {"filled", &T::filled, positive(1),
           "share of its elements that model FLOPs count: of experts' slots those that are taken"}};
}

OptionList<WrittenOperator> operator_options() {
  using O = WrittenOperator;
  std::vector<std::string> kinds;
  for (const OperatorKind& kind : operator_kinds()) {
    if (!kind.operands.counts.empty()) kinds.emplace_back(kind.name);
  }
  const auto names = list_of<std::string>(text());
  return {{"name", &O::name, text(), "within its segment", must_be_there},
          {"kind", &O::kind, words(kinds), "what it computes, which gradients it has, which kernel",
           must_be_there},
          {"annotation", &O::annotation, text(),
           "what it does to dimensions: `b s k+, n k+ -> b s n`", must_be_there},
          {"reads", &O::reads, names,
           "tensors; with the name of their segment before a point if they are of another",
           must_be_there},
          {"writes", &O::writes, names, "tensors of the segment", must_be_there},
          {"window", &O::window, whole(0, most),
           "of a fused attention: how many of the last tokens a token sees; 0: all"},
          {"documents", &O::documents, list_of<std::int64_t>(whole(1, most)),
           "of a fused attention: the lengths of the documents that make a sample; a token sees "
           "those of its own"},
          {"cached", &O::cached, whole(0, most),
           "of an attention with caches: tokens that are in the KV cache already"},
          {"image_rows", &O::image_rows, whole(0, 1'000'000),
           "of kinds that know windows of square images: rows of tokens, and as many columns"},
          {"window_side", &O::window_side, whole(0, 1'000'000),
           "with `image_rows`: rows of a window, and columns"}};
}

OptionList<WrittenSegment> segment_options() {
  using S = WrittenSegment;
  using T = WrittenTaking;
  const OptionList<T> taking = {
      {"name", &T::name, text(), "by which operators of the segment read it", must_be_there},
      {"from", &T::from, text(),
       "in the first turn: a tensor of an earlier segment, `segment.tensor`", must_be_there},
      {"then", &T::then, text(), "later: a tensor of the turn before, without its segment",
       must_be_there}};
  return {{"name", &S::name, text(), "of a stretch that plans treat as one, such as a layer",
           must_be_there},
          {"repeat", &S::repeat, whole(1, 10'000),
           "turns, each a segment of its own, whose names get a point and a number",
           "once, without a number"},
          {"first", &S::first, whole(0, 1'000'000), "with `repeat`: number of the first turn"},
          {"takes", &S::takes, list_of<T>(object_of(taking)),
           "with `repeat`: what the first turn reads of another segment, and each later one of the "
           "turn before",
           "none"},
          {"tensors", &S::tensors, list_of<WrittenTensor>(object_of(tensor_options())),
           "that the segment computes or holds", must_be_there},
          {"operators", &S::operators, list_of<WrittenOperator>(object_of(operator_options()), 1),
           "of the forward pass, in an order in which they can run", must_be_there}};
}

struct WrittenFile {
  std::string file;
};

/// Beside the file that names it.
std::string file_beside(const JsonReader& reader) {
  const std::filesystem::path named = reader.text();
  return (std::filesystem::path(reader.file()).parent_path() / named).string();
}

}  // namespace

OptionList<WrittenModel> written_options() {
  using M = WrittenModel;
  using T = WrittenTaking;
  const OptionList<T> recycled = {
      {"from", &T::from, text(), "a tensor, `segment.tensor`", must_be_there},
      {"then", &T::then, text(), "the input that it becomes, likewise", must_be_there}};
  return {
      {"tokens", &M::tokens, whole(1, most), "of a sample, to count tokens per second",
       must_be_there},
      {"loss", &M::loss, text(), "the tensor that gradients are taken of, `segment.tensor`",
       must_be_there},
      {"segments", &M::segments, list_of<WrittenSegment>(object_of(segment_options()), 3),
       "in order; a pipeline's stages divide those between the first and the last", must_be_there},
      {"passes", &M::passes, whole(1, 1'000), "forward passes before the one backward pass"},
      {"recycled", &M::recycled, list_of<T>(object_of(recycled)),
       "what a pass hands to the next one", "none"}};
}

WrittenModel read_written(const JsonReader& file) {
  WrittenModel model = read_object(written_options(), file, WrittenModel{});
  file.finish();
  return model;
}

std::vector<std::string> files_of(const JsonReader& config) {
  const auto file = config.find("file");
  return file ? std::vector{file_beside(*file)} : std::vector<std::string>{};
}

Family written_family() {
  const OptionList<WrittenFile> options = {{"file", &WrittenFile::file, text(),
                                            "what a model consists of, beside the scenario; "
                                            "`explain --as-model` writes one",
                                            must_be_there}};
  using Asked = std::pair<WrittenModel, std::pair<std::int64_t, NumberTypes>>;
  const auto built = std::make_shared<Memo<Asked, Graph>>(2);
  return trained_in_part(
      {"operators",
       "a model as data, operator by operator",
       {options.begin(), options.end()},
       [built](const JsonReader& reader, std::int64_t batch, const NumberTypes& types) {
         const JsonReader file = JsonReader::from_file(file_beside(reader.at("file")));
         const WrittenModel model = read_written(file);
         try {
           return built->of({model, {batch, types}},
                            [&] { return in_types(graph_of(model, batch, types.values), types); });
         } catch (const InputError& error) {
           throw InputError(file.file(), error.path, error.expected, error.found);
         }
       }});
}

}  // namespace stratagem::model
