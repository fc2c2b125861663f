/// Words of 64 bits as assemblers, compilers and programs in C print them: 0x38003186bb03f000, that with ull
/// or UL behind it, UINT64_C(0x38003186bb03f000), as two of 32 bits; in lines that are numbered, and with the
/// instruction behind them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/qpu/isa/text_cursor.h"

namespace v3d::qpu {

/// Takes the number of a line that stands in front of what it holds: "12:", "0x0060:" or "[12]".
void take_line_number(TextCursor& at);

struct WordText {
  uint64_t word;
  bool is_whole;  ///< of 16 hexadecimal digits: an instruction may stand behind it
  bool is_half;   ///< of 8
};
/// Takes a word if one stands here. Throws TextError if what begins like one has more than 64 bits or other
/// letters in it. @param bare  16 hexadecimal digits alone are one
std::optional<WordText> take_word(TextCursor& at, bool bare);

/// Words of a text that has nothing else but what lines of arrays in C and Python and listings have around
/// them. Two numbers of 8 hexadecimal digits in a line are one, its low half first. @return nothing, with
/// "line:column: what is wrong" in *error
std::optional<std::vector<uint64_t>> words_of_text(std::string_view text, std::string* error);

}  // namespace v3d::qpu
