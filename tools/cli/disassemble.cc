/// v3demu disasm: QPU words as text that asm reads.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/chip/generation.h"
#include "gpu/qpu/check/broken_rules.h"
#include "gpu/qpu/isa/any_word.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/word_text.h"
#include "tools/cli/assembly_options.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"

namespace v3d::tools {
namespace {

struct Options {
  std::string file;
  chip::Generation generation = chip::kDefaultGeneration;
  bool exact = false, plain = false;
  CheckOptions check;
};

bool is_text(const std::string& contents) {
  return std::all_of(contents.begin(), contents.end(), [](char c) {
    return std::isprint(static_cast<unsigned char>(c)) || std::isspace(static_cast<unsigned char>(c));
  });
}

std::optional<std::vector<uint64_t>> words_of_file(const std::string& contents, std::string* error) {
  if (is_text(contents)) return qpu::words_of_text(contents, error);
  if (contents.size() % 8 != 0) {
    *error =
        " neither hexadecimal text nor whole words of 8 bytes: " + std::to_string(contents.size()) + " bytes";
    return {};
  }
  std::vector<uint64_t> words(contents.size() / 8);
  std::memcpy(words.data(), contents.data(), contents.size());
  return words;
}

void print(const Options& options, const std::vector<uint64_t>& words) {
  for (size_t n = 0; n < words.size(); ++n) {
    const auto word = static_cast<unsigned long long>(words[n]);
    const bool valid = qpu::is_instruction(options.generation, words[n]);
    const std::string text = qpu::disassemble(options.generation, words[n]);
    if (!valid) {
      std::printf("%-84s # %4zu  %s\n", absl::StrFormat(".word 0x%016x", words[n]).c_str(), n, text.c_str());
    } else if (options.exact && !qpu::is_canonical(options.generation, words[n])) {
      std::printf(".word 0x%016llx # %4zu  %s\n", word, n, text.c_str());
    } else if (options.plain) {
      std::printf("%s\n", text.c_str());
    } else {
      std::printf("%-84s # %4zu  %016llx\n", text.c_str(), n, word);
    }
  }
}

int disassemble(const Options& options) {
  const auto contents = read_file(options.file, kMostProgramBytes);
  if (!contents) {
    fprintf(stderr, "v3demu disasm: %s: %s\n", options.file.c_str(), strerror(errno));
    return 1;
  }
  std::string error;
  const auto words = words_of_file(*contents, &error);
  if (!words) {
    fprintf(stderr, "%s:%s\n", options.file.c_str(), error.c_str());
    return 1;
  }
  print(options, *words);
  if (options.check.kinds.empty()) return 0;
  const auto broken = options.check.check(options.generation, *words);
  fflush(stdout);
  for (const qpu::BrokenRule& b : broken) fprintf(stderr, "%s: %s\n", options.file.c_str(), b.text.c_str());
  return options.check.fails(broken) ? 1 : 0;
}

}  // namespace

void add_disassemble(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command =
      app->add_subcommand("disasm", "Print QPU words as text in the form of Mesa's disassembler");
  command
      ->add_option(
          "file", options.file,
          "Words, binary (little endian) or as hexadecimal text, that of arrays in C and of numbered "
          "listings too; - is the standard input")
      ->required();
  add_chip_options(command, &options.generation);
  command->add_flag(
      "--exact", options.exact,
      "Print .word for words that asm would not give again: they differ in fields without meaning");
  command->add_flag("--plain", options.plain, "No comments with index and word");
  add_check_options(command, &options.check);
  command->callback([exit_code] { *exit_code = disassemble(options); });
}

}  // namespace v3d::tools
