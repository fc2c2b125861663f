/// v3demu asm: QPU words from text.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/chip/generation.h"
#include "gpu/chip/profile.h"
#include "gpu/qpu/check/broken_rules.h"
#include "gpu/qpu/isa/assembler.h"
#include "tools/cli/assembly_options.h"
#include "tools/cli/commands.h"
#include "tools/cli/explain/explanation.h"
#include "tools/cli/files/files.h"

namespace v3d::tools {
namespace {

struct Options {
  std::string file, output = "-", uniforms, format, name = "program";
  chip::Generation generation = chip::kDefaultGeneration;
  CheckOptions check;
  std::string explained_for;  ///< a board; empty: it is not explained
};

std::string hexadecimal(const qpu::Assembly& a) {
  std::string text;
  for (const uint64_t word : a.words) absl::StrAppendFormat(&text, "%016x\n", word);
  return text;
}

template <typename T>
std::string bytes(const std::vector<T>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(T)};
}

/// Arrays of C or lists of Python: code, and uniforms if the text has any.
std::string arrays(const qpu::Assembly& a, const std::string& name, bool python) {
  std::string text;
  const auto add = [&](const auto& words, const char* type, const char* suffix) {
    if (python)
      absl::StrAppend(&text, name, suffix, " = [\n");
    else
      absl::StrAppend(&text, "static const ", type, " ", name, suffix, "[] = {\n");
    for (const auto word : words)
      absl::StrAppendFormat(&text, "    0x%0*x,\n", static_cast<int>(2 * sizeof(word)), word);
    text += python ? "]\n" : "};\n";
  };
  add(a.words, "uint64_t", "");
  if (!a.uniforms.empty()) add(a.uniforms, "uint32_t", "_uniforms");
  return text;
}

int write(const std::string& path, const std::string& contents) {
  const absl::Status written = write_file(path, contents);
  if (!written.ok()) fprintf(stderr, "v3demu asm: %s\n", std::string(written.message()).c_str());
  return written.ok() ? 0 : 1;
}

/// False when the program breaks rules of scheduling that it must not break. All reports go to stderr.
bool check(const Options& options, const qpu::Assembly& assembly) {
  const auto broken = options.check.check(options.generation, assembly.words);
  for (const qpu::BrokenRule& b : broken)
    fprintf(stderr, "%s:%d: %s\n", options.file.c_str(), assembly.lines[b.index], b.text.c_str());
  return !options.check.fails(broken);
}

/// The first board with a chip.
std::string usual_board(chip::Generation generation) {
  for (const chip::Profile& profile : chip::profiles())
    if (profile.generation == generation) return profile.name;
  return "";
}

/// What the program costs, in place of its words.
int explain_program(const Options& options, const qpu::Assembly& assembly) {
  const chip::Profile& profile = *chip::find_profile(options.explained_for);
  const auto explanation = explain::explain(profile, assembly.words, options.check.four_threads);
  if (!explanation.ok()) {
    fprintf(stderr, "v3demu asm: %s: %s\n", options.file.c_str(),
            std::string(explanation.status().message()).c_str());
    return 1;
  }
  return write(options.output, explain::to_text(profile, *explanation));
}

/// Of a text that is wrong for the chip that was asked for, says for which one it is right.
void name_its_chip(const Options& options, std::string_view text) {
  for (const chip::Generation other : chip::kGenerations)
    if (other != options.generation && qpu::assemble(other, text).errors.empty())
      fprintf(stderr, "v3demu asm: %s is a program for V3D %s, not %s: --chip %s\n", options.file.c_str(),
              chip::version_text(other), chip::version_text(options.generation), chip::version_text(other));
}

int assemble(const Options& options) {
  const auto text = read_file(options.file, kMostProgramBytes);
  if (!text) {
    fprintf(stderr, "v3demu asm: %s: %s\n", options.file.c_str(), strerror(errno));
    return 1;
  }
  const qpu::Assembly assembly = qpu::assemble(options.generation, *text);
  for (const qpu::AssemblyError& error : assembly.errors)
    fprintf(stderr, "%s:%s\n", options.file.c_str(), qpu::to_string(error).c_str());
  if (!assembly.errors.empty()) {
    name_its_chip(options, *text);
    return 1;
  }
  if (!options.check.kinds.empty() && !check(options, assembly)) return 1;
  if (!options.explained_for.empty()) return explain_program(options, assembly);
  if (!options.uniforms.empty() && write(options.uniforms, bytes(assembly.uniforms)) != 0) return 1;
  const std::string format = !options.format.empty() ? options.format : options.output == "-" ? "hex" : "bin";
  if (format == "bin") return write(options.output, bytes(assembly.words));
  if (format == "hex") return write(options.output, hexadecimal(assembly));
  return write(options.output, arrays(assembly, options.name, format == "python"));
}

}  // namespace

void add_assemble(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command = app->add_subcommand("asm", "Translate QPU assembly, as disasm prints it, into words");
  command->add_option("file", options.file, "The text; - is the standard input")->required();
  add_chip_options(command, &options.generation);
  command->add_option("-o,--output", options.output, "Where the words go; default - (the standard output)")
      ->option_text("FILE");
  command
      ->add_option(
          "--format", options.format,
          "bin (little endian; default with -o), hex (a word per line; default without), c or python")
      ->option_text("FORMAT")
      ->check(CLI::IsMember({"bin", "hex", "c", "python"}));
  command->add_option("--uniforms", options.uniforms, "Write the words of .uniform to this file")
      ->option_text("FILE");
  command->add_option("--name", options.name, "Of the array in C or Python (default: program)")
      ->option_text("NAME");
  add_check_options(command, &options.check);
  static bool explained = false;
  command->add_flag(
      "--explain", explained,
      "Print what the program costs on the board in place of its words: clocks, stalls, missing NOPs, "
      "registers, lookups, divergence, advice");
  command->footer(
      "Text for V3D 2.1 has names of its own: docs/qpu.md.\n\n"
      "  loop:                                     # a label; comments start with # or //\n"
      "    fadd rf1, rf2, rf3 ; fmul rf4, rf5.l, 0.5   # add ALU ; mul ALU\n"
      "    sub.pushz rf7, rf7, rf8 ; nop ; thrsw   # then signals\n"
      "    b.anyna loop                            # label or byte distance; three delay slots follow\n"
      "    .word 0x38003186bb03f000                # a word as it is\n"
      "    .uniform 0x20000, -1, 2.5               # words of the uniform stream\n"
      "    end                                     # the eight words that end a program");
  command->callback([command, exit_code] {
    if (explained) {
      const CLI::Option* const device = command->get_option("--device");
      options.explained_for = device->empty() ? usual_board(options.generation) : device->as<std::string>();
    }
    *exit_code = assemble(options);
  });
}

}  // namespace v3d::tools
