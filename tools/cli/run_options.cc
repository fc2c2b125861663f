#include "tools/cli/run_options.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "daemon/board.h"
#include "ioctl/abi/versions.h"
#include "tools/cli/command_line.h"
#include "tools/cli/run/emulator.h"

namespace v3d::tools {
namespace {

/// The positional by which separate_program() knows commands that run a program.
constexpr char kProgram[] = "PROGRAM";

/// What separate_program() found.
std::vector<std::string>& program_words() {
  static std::vector<std::string> words;
  return words;
}

/// "-- PROGRAM [ARGUMENT...]" in the line of usage.
class ProgramFormatter : public WordFormatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    return option->get_name() == kProgram ? std::string("-- ") + kProgram + " [ARGUMENT...]"
                                          : WordFormatter::make_option_usage(option);
  }
};

std::string what_is_wrong(const absl::StatusOr<daemon::Board>& board) {
  return board.ok() ? std::string() : std::string(board.status().message());
}

/// How many words an option takes on the command line; one for those that the command does not have.
size_t words_of_option(const CLI::App& command, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  const CLI::Option* option = command.get_option_no_throw(name);
  const bool takes_value = option && option->get_items_expected_min() > 0;
  return takes_value && name == word ? 2 : 1;
}

}  // namespace

void add_device_option(CLI::App* command, std::string* device) {
  command->add_option("--device", *device, "Board: " + daemon::device_names())
      ->option_text("NAME")
      ->check([](const std::string& name) { return what_is_wrong(daemon::find_board({.device = name})); });
}

void add_board_options(CLI::App* command, BoardChoice* board) {
  add_device_option(command, &board->device);
  command
      ->add_option("--kernel", board->kernel,
                   "Linux whose driver interface is answered with: " + daemon::kernel_names())
      ->option_text("VERSION")
      ->check([](const std::string& name) {
        return ioctl::find_abi(name) ? "" : "no kernel \"" + name + "\"; there are " + daemon::kernel_names();
      });
  command
      ->add_option("--memory", board->memory,
                   "MiB that buffers are made of on rpi0 to rpi3 (default: the board's)")
      ->option_text("MIB");
}

void add_run_options(CLI::App* command, RunOptions* options) {
  add_board_options(command, &options->board);
  command
      ->add_option(
          "--mesa", options->mesa,
          "Prefix of a Mesa with Broadcom drivers (default: $V3DEMU_MESA, that of the "
          "installation, or the cache's), or \"system\": the distribution's, whatever drivers it has")
      ->option_text("PREFIX");
  std::vector<std::string> architectures;
  for (const ForeignArchitecture& one : foreign_architectures()) architectures.emplace_back(one.name);
  command
      ->add_option(
          "--arch", options->arch,
          absl::StrJoin(architectures, " or ") + ": run a program of that architecture, by qemu-user")
      ->option_text("ARCHITECTURE")
      ->check(CLI::IsMember(architectures));
  command
      ->add_option("--root", options->root,
                   "Libraries of such programs: a folder, or a suite of packaging/debian-root")
      ->option_text("ROOT");
  command->add_flag(
      "--sandbox", options->sandbox,
      "Mount /dev/dri and what belongs to it in /sys, for programs that preloading does not reach");
  command->add_flag("--seccomp", options->seccomp,
                    "Answer the system calls of statically linked programs, and of Go's");
  add_program(command);
}

void add_program(CLI::App* command) {
  static std::string unused;
  command->add_option(kProgram, unused, "The program, and its arguments")->option_text(" ");
  command->formatter(std::make_shared<ProgramFormatter>());
}

std::vector<std::string> required_program() {
  if (program_words().empty()) throw CLI::RequiredError("a program to run");
  return program_words();
}

std::vector<std::string> program_behind_options() { return program_words(); }

void separate_program(const CLI::App& app, std::vector<std::string>* words) {
  if (words->empty()) return;
  const auto commands = app.get_subcommands([&](const CLI::App* one) {
    return one->get_name() == words->front() && one->get_option_no_throw(kProgram) != nullptr;
  });
  if (commands.empty()) return;
  size_t at = 1;
  while (at < words->size() && (*words)[at].starts_with("-") && (*words)[at] != "--")
    at += words_of_option(*commands[0], (*words)[at]);
  // Of a command that takes a file as well the program stands after "--".
  if (commands[0]->get_option_no_throw("file") != nullptr)
    at = static_cast<size_t>(std::find(words->begin(), words->end(), "--") - words->begin());
  if (at >= words->size()) return;
  const auto options_end = words->begin() + static_cast<ptrdiff_t>(at);
  program_words().assign(options_end + (*options_end == "--" ? 1 : 0), words->end());
  words->erase(options_end, words->end());
}

}  // namespace v3d::tools
