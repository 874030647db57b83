// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/captions.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

namespace rrfp::cli {
namespace {

constexpr int64_t kTrainingMax = 20000;  // samples whose captions are looked at
constexpr size_t kColumn = 40;
// Inputs of rrfp_model_create_vision_language.
constexpr size_t kTokens = 0;
constexpr size_t kSources = 4;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

/// White space does not count, but that it parts words.
std::string tidy(const std::string& text) {
  std::string out;
  for (const std::string& word : words_of(text)) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// A microbatch of one sequence, in which samples lie side by side.
struct Sequence {
  explicit Sequence(const rrfp_batch& batch)
      : inputs(batch.inputs, RRFP_SAMPLES_INPUTS),
        tokens(numbers(inputs[kTokens])),
        sources(numbers(inputs[kSources])) {}

  static std::span<const int32_t> numbers(const rrfp_tensor& tensor) {
    return {static_cast<const int32_t*>(tensor.data), static_cast<size_t>(tensor.shape[1])};
  }

  std::span<const rrfp_tensor> inputs;
  std::span<const int32_t> tokens;
  std::span<const int32_t> sources;
};

/// The texts behind pictures, those that are not empty.
std::vector<std::string> captions_of(const Sequence& sequence) {
  std::vector<std::string> captions;
  std::string text;
  bool is_behind_picture = false;
  const auto end = [&] {
    std::string caption = tidy(text);
    if (is_behind_picture && !caption.empty()) captions.push_back(std::move(caption));
    text.clear();
  };
  for (size_t t = 0; t < sequence.tokens.size(); ++t) {
    if (sequence.sources[t] >= 0) {
      end();
      is_behind_picture = true;
    } else if (sequence.tokens[t] == RRFP_TOKEN_END) {
      end();
      is_behind_picture = false;
    } else if (sequence.tokens[t] < RRFP_TOKEN_IMAGE) {
      text += static_cast<char>(sequence.tokens[t]);
    }
  }
  end();
  return captions;
}

class Counts {
 public:
  void add(const std::string& text) { ++counts_[text]; }
  [[nodiscard]] bool has(const std::string& text) const { return counts_.contains(text); }
  /// Of equally frequent ones the first by the alphabet.
  [[nodiscard]] std::string most_frequent() const {
    const auto found =
        std::max_element(counts_.begin(), counts_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return found == counts_.end() ? std::string() : found->first;
  }

 private:
  std::map<std::string, int64_t> counts_;
};

/// What can be said only with the captions of the training samples.
void compare_with_training(Batches& batches, CaptionReport& report) {
  constexpr int64_t kBatch = 64;
  const int64_t samples = std::min(batches.samples(RRFP_SPLIT_TRAIN), kTrainingMax);
  Counts whole;
  std::vector<Counts> places;
  for (int64_t at = 0; at < samples; at += kBatch) {
    const auto size = static_cast<int32_t>(std::min(kBatch, samples - at));
    const Sequence sequence(batches.read(RRFP_SPLIT_TRAIN, static_cast<uint64_t>(at), size, 1));
    for (const std::string& each : captions_of(sequence)) {
      whole.add(each);
      const std::vector<std::string> words = words_of(each);
      places.resize(std::max(places.size(), words.size()));
      for (size_t place = 0; place < words.size(); ++place) places[place].add(words[place]);
    }
  }
  report.guess = whole.most_frequent();
  for (const Counts& place : places) {
    report.word_guess += (report.word_guess.empty() ? "" : " ") + place.most_frequent();
  }
  for (const Caption& each : report.captions) {
    if (!whole.has(each.there)) report.unseen.add(each.there, each.written);
  }
}

/// The inputs up to the rows of the last picture.
std::array<rrfp_tensor, RRFP_SAMPLES_INPUTS> prompt_of(const Sequence& sequence, size_t length) {
  std::array<rrfp_tensor, RRFP_SAMPLES_INPUTS> prompt{};
  std::copy(sequence.inputs.begin(), sequence.inputs.end(), prompt.begin());
  for (size_t k = 0; k + 1 < prompt.size(); ++k) {
    prompt[k].shape[1] = static_cast<int64_t>(length);
  }
  return prompt;
}

std::string write_caption(rrfp_generator* generator, const Sequence& sequence, size_t length,
                          int32_t context) {
  const auto prompt = prompt_of(sequence, length);
  call(rrfp_generator_start_inputs, generator, prompt.data());
  auto sampling = prepared(rrfp_sampling_init);
  sampling.temperature = 0;
  std::string text;
  for (size_t t = length; t < static_cast<size_t>(context); ++t) {
    int32_t token = 0;
    call(rrfp_generator_next, generator, &sampling, &token);
    if (token >= RRFP_TOKEN_IMAGE) break;
    text += static_cast<char>(token);
  }
  return tidy(text);
}

/// Of one sample. False if there is no picture, or no text behind the last one.
bool add_caption(rrfp_generator* generator, const Sequence& sequence, int32_t context,
                 CaptionReport& report) {
  size_t length = sequence.tokens.size();
  while (length > 0 && sequence.sources[length - 1] < 0) --length;
  if (length == 0) return false;
  std::string there;
  for (size_t t = length; t < sequence.tokens.size(); ++t) {
    if (sequence.tokens[t] < RRFP_TOKEN_IMAGE) there += static_cast<char>(sequence.tokens[t]);
  }
  there = tidy(there);
  if (there.empty()) return false;
  Caption caption{there, write_caption(generator, sequence, length, context)};
  report.model.add(caption.there, caption.written);
  report.captions.push_back(std::move(caption));
  return true;
}

Json score_json(const Score& score) {
  return {{"exact", score.exact_share()}, {"words", score.word_share()}};
}

}  // namespace

void Score::add(const std::string& there, const std::string& written) {
  const std::vector<std::string> expected = words_of(there);
  const std::vector<std::string> found = words_of(written);
  ++captions;
  if (expected == found) ++exact;
  words += static_cast<int64_t>(expected.size());
  for (size_t k = 0; k < std::min(expected.size(), found.size()); ++k) {
    if (expected[k] == found[k]) ++right_words;
  }
}

double Score::exact_share() const {
  return share(exact, captions);
}

double Score::word_share() const {
  return share(right_words, words);
}

CaptionReport caption(rrfp_trainer* trainer, Batches& batches, int32_t context, int64_t count) {
  CaptionReport report;
  const auto generator = create<Generator>(rrfp_generator_create, trainer, context);
  const int64_t samples = batches.samples(RRFP_SPLIT_VALIDATION);
  const int64_t parts = std::min(count, samples);
  for (int64_t k = 0; k < parts; ++k) {
    // The first sample of each part that has a caption.
    for (int64_t at = spread(k, samples, parts); at < spread(k + 1, samples, parts); ++at) {
      const auto position = static_cast<uint64_t>(at);
      const Sequence sequence(batches.read(RRFP_SPLIT_VALIDATION, position, 1, 1));
      if (add_caption(generator.get(), sequence, context, report)) break;
    }
  }
  if (report.captions.empty()) return report;
  compare_with_training(batches, report);
  for (const Caption& each : report.captions) {
    Score exact;  // the two guesses are not one
    Score words;
    exact.add(each.there, report.guess);
    words.add(each.there, report.word_guess);
    report.guessed.captions += exact.captions;
    report.guessed.exact += exact.exact;
    report.guessed.words += words.words;
    report.guessed.right_words += words.right_words;
  }
  return report;
}

Json captions_json(const CaptionReport& report) {
  Json list = Json::array();
  for (const Caption& each : report.captions) {
    list.push_back({{"true", each.there}, {"written", each.written}});
  }
  Json guess = score_json(report.guessed);
  guess["caption"] = report.guess;
  guess["word_caption"] = report.word_guess;
  Json unseen = {{"count", report.unseen.captions}};
  unseen.update(score_json(report.unseen));
  Json result = {{"count", report.model.captions}};
  result.update(score_json(report.model));
  result["unseen"] = std::move(unseen);
  result["guess"] = std::move(guess);
  result["list"] = std::move(list);
  return result;
}

std::string captions_text(const CaptionReport& report) {
  if (report.captions.empty()) {
    return "captions              none: no validation sample has text behind its last picture\n";
  }
  std::string text = format("%-*s  %s\n", static_cast<int>(kColumn), "true", "written");
  for (const Caption& each : report.captions) {
    std::string line = printable(each.there);
    line.resize(std::max(kColumn, line.size()), ' ');
    text += line + (each.there == each.written ? "  " : "* ") + printable(each.written) + "\n";
  }
  const auto row = [&](const char* name, double found, double guessed) {
    text += format("%-22s%5.1f %%, a guess without the picture %.1f %%\n", name, 100 * found,
                   100 * guessed);
  };
  text += format("%-22s%lld, of validation samples\n", "captions",
                 static_cast<long long>(report.model.captions));
  row("exact captions", report.model.exact_share(), report.guessed.exact_share());
  row("right words", report.model.word_share(), report.guessed.word_share());
  text += format("%-22s%lld of the captions", "not in training",
                 static_cast<long long>(report.unseen.captions));
  if (report.unseen.captions > 0) {
    text += format(", %.1f %% of their words right", 100 * report.unseen.word_share());
  }
  return text + "\n";
}

}  // namespace rrfp::cli
