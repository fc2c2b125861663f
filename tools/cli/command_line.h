/// These functions explain v3demu's command line: help in words, and what to do about a word that it does not
/// know.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace v3d::tools {

/// Options with the name of what they take, and what they go with in words; positionals in capitals.
class WordFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
};

/// "help" becomes --help, and "help COMMAND" the same of that.
void translate_help(std::vector<std::string>* words);

/// What is wrong with the first word if it should be a command and is none; else empty.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words);

/// An error of the parser with what may have been meant, for people.
/// @param words  of the command line
std::string explain(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words);

/// Of these the one that is most like the word; empty: none is like it.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace v3d::tools
