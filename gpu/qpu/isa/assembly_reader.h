/// An AssemblyReader is what assemblers have in common, whatever the instructions are: lines, comments,
/// labels, .word, .uniform, and branches to labels that come later.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/isa/text_cursor.h"

namespace v3d::qpu {

/// 7 of "rf7", with the prefix "rf" and more than 7 registers.
inline std::optional<uint8_t> find_register(std::string_view name, std::string_view prefix, int count) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  int index = -1;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || stop != name.data() + name.size() || index < 0 || index >= count) return {};
  return static_cast<uint8_t>(index);
}

class AssemblyReader {
 public:
  Assembly read(std::string_view text);

 protected:
  AssemblyReader() = default;
  virtual ~AssemblyReader() = default;

  /// Takes an instruction, or a name that stands for several, up to the end of the line.
  virtual void statement(TextCursor& at) = 0;
  /// The branch with this distance, in bytes from the word after its delay slots, added to its own.
  virtual uint64_t resolve(uint64_t branch, uint32_t distance) const = 0;
  /// Branches to this name do not go to a label.
  virtual bool is_target(std::string_view name) const = 0;

  void emit(uint64_t word);
  /// Of the branch that is emitted next. @param column  where the label stands
  void refer_to(std::string_view label, size_t column);

 private:
  struct Reference {
    size_t word;
    int line;
    size_t column;
    std::string label;
  };
  void line(std::string_view text);
  void labelled_statement(TextCursor& at);
  void define_label(const TextCursor& start, std::string_view name);
  void directive(const TextCursor& start, TextCursor& at);
  void words(TextCursor& at);
  void uniforms(TextCursor& at);
  void fail(int line, const TextError& error);

  int line_ = 0;
  Assembly result_;
  std::map<std::string, size_t, std::less<>> labels_;
  std::vector<Reference> references_;
};

}  // namespace v3d::qpu
