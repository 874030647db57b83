// SPDX-License-Identifier: Apache-2.0
//
// The C API as this command uses it: handles that free themselves, and failures as exceptions that
// carry the exit code. Nothing else here knows about statuses.
#pragma once

#include <rrfp/multimodal.h>
#include <rrfp/simulate.h>
#include <rrfp/train.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace rrfp::cli {

inline constexpr int kExitFailed = 1;    // the run failed
inline constexpr int kExitBadInput = 2;  // options, data or files are not what they should be

/// Ends the command with a text for people.
class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& text)
      : std::runtime_error(text), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// An answer of the library.
class ApiFailure : public Failure {
 public:
  ApiFailure(rrfp_status status, const rrfp_error& error);
  [[nodiscard]] rrfp_status status() const { return status_; }

 private:
  rrfp_status status_;
};

[[noreturn]] void bad_input(const std::string& text);

template <auto kDestroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const {
    kDestroy(handle);
  }
};
using Model = std::unique_ptr<rrfp_model, Destroy<rrfp_model_destroy>>;
using Trainer = std::unique_ptr<rrfp_trainer, Destroy<rrfp_trainer_destroy>>;
using Data = std::unique_ptr<rrfp_data, Destroy<rrfp_data_destroy>>;
using Samples = std::unique_ptr<rrfp_samples, Destroy<rrfp_samples_destroy>>;
using Hint = std::unique_ptr<rrfp_hint, Destroy<rrfp_hint_destroy>>;
using Graph = std::unique_ptr<rrfp_graph, Destroy<rrfp_graph_destroy>>;
using Simulation = std::unique_ptr<rrfp_simulation, Destroy<rrfp_simulation_destroy>>;
using Generator = std::unique_ptr<rrfp_generator, Destroy<rrfp_generator_destroy>>;

/// Calls a function whose last parameter is the error; throws ApiFailure on a negative status.
template <class Function, class... Arguments>
rrfp_status call(Function* function, Arguments... arguments) {
  rrfp_error error{};
  const rrfp_status status = function(arguments..., &error);
  if (status < 0) throw ApiFailure(status, error);
  return status;
}

/// The handle that a *_create or *_open function makes.
template <class Handle, class Function, class... Arguments>
Handle create(Function* function, Arguments... arguments) {
  typename Handle::pointer made = nullptr;
  call(function, arguments..., &made);
  return Handle(made);
}

/// What `work` returns. Failures get a label in front, such as "--hint zb-v".
template <class Work>
auto labelled(const std::string& label, const Work& work) {
  try {
    return work();
  } catch (const Failure& failure) {
    throw Failure(failure.exit_code(), label + ": " + failure.what());
  }
}

/// The text that a function writes to a buffer of the caller.
template <class Function, class... Arguments>
std::string text_of(Function* function, Arguments... arguments) {
  std::string text;
  size_t size = 1;
  do {  // what is described may grow in between
    text.resize(size);
    call(function, arguments..., text.data(), text.size(), &size);
  } while (size > text.size());
  text.resize(size > 0 ? size - 1 : 0);
  return text;
}

/// A struct with its defaults.
template <class Struct>
Struct prepared(void (*init)(Struct*)) {
  Struct value;
  init(&value);
  return value;
}

}  // namespace rrfp::cli
