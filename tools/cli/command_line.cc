#include "tools/cli/command_line.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tools/cli/run/program.h"

namespace v3d::tools {
namespace {

std::string capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// Letters that have to be changed, added, left out or swapped with their neighbour.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  std::iota(d[0].begin(), d[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* one) { return one->get_group() != ""; }))
    names.push_back(command->get_name());
  return names;
}

/// Null: there is none of that name.
const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// The command of a command line; the program itself when there is none.
const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return app;
  const CLI::App* command = find_command(app, words.front());
  return command ? *command : app;
}

std::string option_list(const std::set<CLI::Option*>& options) {
  std::string text;
  for (const CLI::Option* option : options)
    absl::StrAppend(&text, text.empty() ? "" : " or ", option->get_name());
  return text;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

template <typename Error>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Error*>(&error) != nullptr;  // names are the command's for some
}

std::string replaced(std::string text, std::string_view old, std::string_view by) {
  if (const size_t at = text.find(old); at != std::string::npos) text.replace(at, old.size(), by);
  return text;
}

/// What the parser found no place for.
std::string explain_extra(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("-")) return absl::StrCat("\"", word, "\" is one word too many");
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = nearest(name, option_names(command));
  return absl::StrCat("there is no option ", name, meant.empty() ? "" : "; did you mean " + meant + "?");
}

}  // namespace

std::string WordFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (is_positional) return capitals(option->get_name(true, false));
  std::string name = option->get_name(false, true);
  // Of a flag with a value when it has none: "{value}".
  if (const size_t brace = name.find('{'); brace != std::string::npos)
    name.erase(brace, name.find('}') + 1 - brace);
  return name;
}

std::string WordFormatter::make_option_opts(const CLI::Option* option) const {
  if (!option->get_option_text().empty()) return " " + option->get_option_text();
  const bool takes_value = option->get_type_size() != 0 && option->get_expected_max() != 0;
  return takes_value && !option->get_positional() ? " VALUE" : "";
}

std::string WordFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_needs().empty())
    absl::StrAppend(&text, " (only with ", option_list(option->get_needs()), ")");
  if (!option->get_excludes().empty())
    absl::StrAppend(&text, " (not with ", option_list(option->get_excludes()), ")");
  return text;
}

std::string WordFormatter::make_option_usage(const CLI::Option* option) const {
  const std::string name = capitals(option->get_name(true, false));
  return option->get_required() ? name : "[" + name + "]";
}

void translate_help(std::vector<std::string>* words) {
  if (words->empty() || words->front() != "help") return;
  words->erase(words->begin());
  if (!words->empty() && words->front().starts_with("-")) words->clear();
  words->resize(std::min<size_t>(words->size(), 1));
  words->push_back("--help");
}

std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::string& word = words.front();
  if (word.starts_with("-"))
    return app.get_option_no_throw(word) ? std::string() : explain_extra(app, word) + ", nor a command";
  if (find_command(app, word)) return {};
  std::string text = absl::StrCat("there is no command \"", word, "\"");
  const std::vector<std::string> names = command_names(app);
  if (const std::string meant = nearest(word, names); !meant.empty())
    absl::StrAppend(&text, "; did you mean ", meant, "?");
  else if (!find_program(word).empty())
    absl::StrAppend(&text, "; to run that program: v3demu run -- ", word);
  text += "\nCommands:";
  for (const std::string& name : names) absl::StrAppend(&text, " ", name);
  return text;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& words) {
  const CLI::App& command = command_of(app, words);
  std::string what = error.what();
  const size_t colon = what.find(':');
  if (is<CLI::ExtrasError>(error) && colon != std::string::npos) {
    const std::string extra = what.substr(colon + 2);
    return explain_extra(command, extra.substr(0, extra.find(' ')));
  }
  if (is<CLI::ExcludesError>(error)) return replaced(what, " excludes ", " does not go with ");
  if (is<CLI::RequiresError>(error)) return replaced(what, " requires ", " goes only with ");
  if (is<CLI::ArgumentMismatch>(error) && what.find("required") != std::string::npos &&
      colon != std::string::npos)
    return what.substr(0, colon) + " needs a value";
  constexpr std::string_view kUnconverted = "Could not convert: ";
  if (is<CLI::ConversionError>(error) && what.starts_with(kUnconverted)) {
    const std::string rest = what.substr(kUnconverted.size());
    const size_t sign = std::min(rest.find(" = "), rest.size());
    return absl::StrCat(rest.substr(0, sign), ": \"", rest.substr(std::min(sign + 3, rest.size())),
                        "\" is no number");
  }
  constexpr std::string_view kMissingFile = "file is required";
  if (what == kMissingFile) return "FILE is missing";
  return what;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    // What was cut short is meant as well, if it is not too short.
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const size_t far = begins ? 1 : distance(word, candidate);
    if (far >= least || far >= candidate.size()) continue;
    least = far;
    best = candidate;
  }
  return best;
}

}  // namespace v3d::tools
