/// A TextCursor is a place in one line of assembly text, and takes the tokens that start there.
#pragma once

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace v3d::qpu {

/// Thrown by parsers inside one translation unit: what is wrong, and at which column from 0.
struct TextError {
  size_t column;
  std::string message;
};

class TextCursor {
 public:
  explicit TextCursor(std::string_view line) : line_(line) {}

  size_t column() const { return at_; }
  /// Skips blanks. True at the end of the line.
  bool at_end() {
    while (at_ < line_.size() && std::isspace(static_cast<unsigned char>(line_[at_]))) ++at_;
    return at_ == line_.size();
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < line_.size() ? line_[at_ + ahead] : '\0'; }
  bool digit(size_t ahead = 0) const { return std::isdigit(static_cast<unsigned char>(peek(ahead))) != 0; }
  /// Takes the text if it stands exactly here.
  bool take(std::string_view text) {
    if (line_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  /// Leaves out so many characters that peek() has shown, or all that follow.
  void skip(size_t characters = std::string_view::npos) { at_ += std::min(characters, line_.size() - at_); }
  /// Letters, digits and underscores; may be empty.
  std::string_view word() {
    const size_t start = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') ++at_;
    return line_.substr(start, at_ - start);
  }
  /// What stands here, for messages: up to the next blank or separator.
  std::string here() const {
    const size_t end = std::min(line_.find_first_of(" \t,;", at_), line_.size());
    if (end > at_) return absl::StrCat("\"", std::string(line_.substr(at_, end - at_)), "\"");
    return at_ == line_.size() ? "the end of the line" : absl::StrCat("\"", std::string(1, line_[at_]), "\"");
  }
  [[noreturn]] void fail(std::string message) const { fail_at(at_, std::move(message)); }
  [[noreturn]] static void fail_at(size_t column, std::string message) {
    throw TextError{column, std::move(message)};
  }

  /// A decimal or hexadecimal number of at most 64 bits, or a decimal fraction; `bits` of a fraction are
  /// those of a float.
  struct Number {
    uint64_t magnitude = 0;
    bool negative = false, fraction = false, hexadecimal = false;
    uint64_t value() const { return negative ? ~magnitude + 1 : magnitude; }
    /// As 32 bits; empty if it does not fit.
    std::optional<uint32_t> bits() const {
      if (fraction) return static_cast<uint32_t>(magnitude);
      if (negative ? magnitude > 0x80000000u : magnitude > 0xffffffffu) return {};
      return static_cast<uint32_t>(value());
    }
  };
  bool number_here() const { return digit() || ((peek() == '-' || peek() == '+') && digit(1)); }
  Number number() {
    Number n;
    const size_t start = at_;
    n.negative = take("-");
    if (!n.negative) take("+");
    n.hexadecimal = take("0x") || take("0X");
    size_t end = at_;
    const auto is_digit = [&](char c) {
      const auto u = static_cast<unsigned char>(c);
      return (n.hexadecimal ? std::isxdigit(u) : std::isdigit(u)) != 0;
    };
    while (end < line_.size() && is_digit(line_[end])) ++end;
    // "15.ff" is an unpacked 15.
    if (!n.hexadecimal && end + 1 < line_.size() && line_[end] == '.' &&
        std::isdigit(static_cast<unsigned char>(line_[end + 1])))
      return finish_fraction(start, n);
    const auto [stop, error] =
        std::from_chars(line_.data() + at_, line_.data() + end, n.magnitude, n.hexadecimal ? 16 : 10);
    if (error != std::errc()) fail_at(start, "a number of at most 64 bits is expected");
    at_ = static_cast<size_t>(stop - line_.data());
    if (std::isalnum(static_cast<unsigned char>(peek()))) fail_at(start, "not a number");
    return n;
  }

 private:
  Number finish_fraction(size_t start, Number n) {
    float value = 0;
    const auto [stop, error] = std::from_chars(line_.data() + at_, line_.data() + line_.size(), value);
    if (error != std::errc()) fail_at(start, "not a number that a float can hold");
    at_ = static_cast<size_t>(stop - line_.data());
    if (n.negative) value = -value;
    n.fraction = true;
    n.negative = false;
    n.magnitude = std::bit_cast<uint32_t>(value);
    return n;
  }

  std::string_view line_;
  size_t at_ = 0;
};

}  // namespace v3d::qpu
