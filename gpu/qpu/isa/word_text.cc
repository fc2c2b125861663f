#include "gpu/qpu/isa/word_text.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"

namespace v3d::qpu {
namespace {

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

/// Digits from here on.
size_t hex_digits(const TextCursor& at, size_t ahead) {
  size_t count = 0;
  while (is_hex(at.peek(ahead + count))) ++count;
  return count;
}

/// What arrays have around their elements.
void skip_separators(TextCursor& at) {
  while (!at.at_end() &&
         (at.take(",") || at.take("{") || at.take("}") || at.take("[") || at.take("]") || at.take(";"))) {
  }
}

/// The first line of an array, as "static const uint64_t program[] = {".
bool begins_array(std::string_view line) {
  const size_t last = line.find_last_not_of(" \t\r");
  return last != std::string_view::npos && (line[last] == '{' || line[last] == '[') &&
         line.find('=') != std::string_view::npos;
}

/// Blanks stand for comments that end in the line: columns stay.
std::string without_comments(std::string_view text) {
  std::string line(text);
  for (size_t begin; (begin = line.find("/*")) != std::string::npos;) {
    const size_t end = line.find("*/", begin + 2);
    if (end == std::string::npos)
      line.resize(begin);
    else
      line.replace(begin, end + 2 - begin, end + 2 - begin, ' ');
  }
  for (const char* const begin : {"#", "//"}) line.resize(std::min(line.find(begin), line.size()));
  return line;
}

/// Takes a number in front of a word of 16 digits, as "12  38003186bb03f000" has it.
void take_bare_number(TextCursor& at) {
  TextCursor next = at;
  if (hex_digits(next, 0) >= 16 || !next.digit()) return;
  next.word();
  const size_t column = next.column();
  next.at_end();
  if (next.column() != column && hex_digits(next, 0) == 16) at = next;
}

uint64_t whole_of(TextCursor& at, const WordText& low, const TextCursor& start) {
  skip_separators(at);
  const auto high = at.at_end() ? std::nullopt : take_word(at, true);
  if (!high || !high->is_half)
    start.fail("the other half of a word is missing: two of 32 bits are one of 64");
  return high->word << 32 | low.word;
}

void words_of_line(std::string_view line, std::vector<uint64_t>& words) {
  TextCursor at(line);
  at.at_end();
  take_line_number(at);
  take_bare_number(at);
  for (skip_separators(at); !at.at_end(); skip_separators(at)) {
    const TextCursor start = at;
    const auto word = take_word(at, true);
    if (!word || !(word->is_whole || word->is_half))
      start.fail("a word of 16 hexadecimal digits is expected, or two of 8");
    words.push_back(word->is_whole ? word->word : whole_of(at, *word, start));
    // Behind a blank and no other word: its instruction.
    TextCursor next = at;
    if (next.at_end() || !std::isalpha(static_cast<unsigned char>(next.peek())) ||
        next.column() == at.column())
      continue;
    if (hex_digits(next, 0) != 16 && next.word() != "UINT64_C") return;
  }
}

}  // namespace

void take_line_number(TextCursor& at) {
  TextCursor next = at;
  const bool bracket = next.take("[");
  next.at_end();
  if (!next.digit()) return;
  next.word();
  if (bracket ? next.take("]") : next.take(":")) {
    next.at_end();
    at = next;
  }
}

std::optional<WordText> take_word(TextCursor& at, bool bare) {
  const bool macro = at.take("UINT64_C(");
  if (!at.digit() && !(bare && !macro && hex_digits(at, 0) == 16)) {
    if (macro) at.fail("a number is expected");
    return {};
  }
  const TextCursor start = at;
  WordText word{};
  const bool prefixed = at.take("0x") || at.take("0X");
  const size_t digits = hex_digits(at, 0);
  if (prefixed || (bare && digits == 16)) {
    if (digits == 0) start.fail("a word of 64 bits is expected");
    if (digits > 16) start.fail("a number of at most 64 bits is expected");
    for (size_t n = 0; n < digits; ++n) {
      const auto c = static_cast<unsigned char>(at.peek(n));
      word.word =
          word.word << 4 | static_cast<uint64_t>(std::isdigit(c) ? c - '0' : std::tolower(c) - 'a' + 10);
    }
    at.skip(digits);
    word.is_whole = digits == 16;
    word.is_half = digits == 8;
    for (const std::string_view suffix : {"ull", "ULL", "ul", "UL", "llu", "LLU", "u", "U"})
      if (at.take(suffix)) break;
    if (std::isalnum(static_cast<unsigned char>(at.peek()))) start.fail("a word of 64 bits is expected");
  } else {
    const TextCursor::Number number = at.number();
    if (number.fraction) start.fail("a word of 64 bits is expected");
    word.word = number.value();
  }
  if (macro && !at.take(")")) at.fail("\")\" is expected");
  return word;
}

std::optional<std::vector<uint64_t>> words_of_text(std::string_view text, std::string* error) {
  std::vector<uint64_t> words;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string one = without_comments(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    try {
      if (!begins_array(one)) words_of_line(one, words);
    } catch (const TextError& wrong) {
      *error = absl::StrCat(line, ":", wrong.column + 1, ": ", wrong.message);
      return {};
    }
  }
  return words;
}

}  // namespace v3d::qpu
