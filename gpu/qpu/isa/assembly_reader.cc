#include "gpu/qpu/isa/assembly_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gpu/qpu/isa/word_text.h"

namespace v3d::qpu {

Assembly AssemblyReader::read(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  constexpr size_t kWithSlots = 4;
  for (const Reference& r : references_) {
    const auto found = labels_.find(r.label);
    if (found == labels_.end())
      fail(r.line, {r.column, absl::StrCat("the label ", r.label, " is not defined")});
    else
      result_.words[r.word] =
          resolve(result_.words[r.word], static_cast<uint32_t>((found->second - r.word - kWithSlots) * 8));
  }
  std::stable_sort(result_.errors.begin(), result_.errors.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return std::move(result_);
}

void AssemblyReader::emit(uint64_t word) {
  result_.words.push_back(word);
  result_.lines.push_back(line_);
}

void AssemblyReader::refer_to(std::string_view label, size_t column) {
  references_.push_back({result_.words.size(), line_, column, std::string(label)});
}

void AssemblyReader::fail(int line, const TextError& error) {
  result_.errors.push_back({line, static_cast<int>(error.column) + 1, error.message});
}

void AssemblyReader::line(std::string_view text) {
  ++line_;
  if (const size_t comment = std::min(text.find('#'), text.find("//")); comment != text.npos)
    text = text.substr(0, comment);
  try {
    TextCursor at(text);
    at.at_end();
    take_line_number(at);
    labelled_statement(at);
    if (!at.at_end()) at.fail("nothing is expected here, not " + at.here());
  } catch (const TextError& error) {
    fail(line_, error);
    // Of a branch that was not emitted.
    std::erase_if(references_, [this](const Reference& r) { return r.word >= result_.words.size(); });
  }
}

void AssemblyReader::labelled_statement(TextCursor& at) {
  while (!at.at_end()) {
    const TextCursor start = at;
    if (start.digit() || TextCursor(at).take("UINT64_C(")) return words(at);
    const std::string_view name = at.word();
    if (name.empty() && at.take(".")) return directive(start, at);
    TextCursor next = at;
    if (name.empty() || next.at_end() || !next.take(":")) {
      at = start;
      return statement(at);
    }
    define_label(start, name);
    at = next;
  }
}

void AssemblyReader::define_label(const TextCursor& start, std::string_view name) {
  if (is_target(name))
    start.fail(absl::StrCat(std::string(name), " is the name of a branch target, not of a label"));
  if (!labels_.emplace(name, result_.words.size()).second)
    start.fail(absl::StrCat("the label ", std::string(name), " is defined twice"));
}

void AssemblyReader::directive(const TextCursor& start, TextCursor& at) {
  const std::string_view name = at.word();
  if (name == "word") return words(at);
  if (name == "uniform") return uniforms(at);
  start.fail(absl::StrCat("there is no directive .", std::string(name)));
}

/// Behind the last one a comma, or behind a single one its instruction, which it has already said.
void AssemblyReader::words(TextCursor& at) {
  bool is_whole = false;
  do {
    at.at_end();
    const auto word = take_word(at, false);
    if (!word) at.fail("a word of 64 bits is expected, not " + at.here());
    emit(word->word);
    is_whole = word->is_whole;
    if (!at.at_end() && at.take(",")) {
      is_whole = false;
      if (at.at_end()) return;
      continue;
    }
    break;
  } while (true);
  if (is_whole) at.skip();
}

void AssemblyReader::uniforms(TextCursor& at) {
  do {
    at.at_end();
    const size_t column = at.column();
    if (!at.number_here()) at.fail("a number is expected, not " + at.here());
    const auto bits = at.number().bits();
    if (!bits) TextCursor::fail_at(column, "a uniform has 32 bits");
    result_.uniforms.push_back(*bits);
  } while (!at.at_end() && at.take(","));
}

}  // namespace v3d::qpu
