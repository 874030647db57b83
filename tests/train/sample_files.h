// SPDX-License-Identifier: Apache-2.0
//
// A manifest of many small samples: which sample a sequence holds can be read from its text, and
// which picture from its color.
#pragma once

#include <string>

#include "tests/train/png_files.h"
#include "tests/train/scratch.h"

namespace rrfp::test {

struct SampleFiles {
  ScratchFolder folder;
  std::string manifest = folder / "samples.jsonl";

  /// Sample k has k mod 3 pictures, and its number and some letters as text.
  explicit SampleFiles(int samples) {
    std::string lines;
    for (int k = 0; k < samples; ++k) {
      std::string text = std::to_string(k) + std::string(static_cast<size_t>(k * 7 % 11), 'x');
      std::string images;
      for (int picture = 0; picture < k % 3; ++picture) {
        const std::string name = name_of(k, picture);
        write_file(folder / name, encode(plain(5, 4, color_of(k, picture))));
        images += (picture > 0 ? ", \"" : "\"") + name + "\"";
        text += "<image>";
      }
      lines += "{\"text\": \"" + text + "\", \"images\": [" + images + "]}\n";
    }
    write_file(manifest, lines);
  }

  static std::string name_of(int sample, int picture) {
    return std::to_string(sample) + "-" + std::to_string(picture) + ".png";
  }
  static Rgb color_of(int sample, int picture) {
    return {static_cast<uint8_t>(sample), static_cast<uint8_t>(sample / 256),
            static_cast<uint8_t>(picture)};
  }
};

}  // namespace rrfp::test
