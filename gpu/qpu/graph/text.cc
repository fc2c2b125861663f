#include "gpu/qpu/graph/text.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace v3d::qpu::graph {
namespace {

bool gives_value(Op op) {
  switch (op) {
    case Op::kWritePort:
    case Op::kPut:
    case Op::kParameter:
    case Op::kStoreRow:
    case Op::kStoreOutput:
    case Op::kStoreTile:
    case Op::kShade:
    case Op::kPassed:
    case Op::kKeep:
    case Op::kWhen:
    case Op::kAgain:
    case Op::kResume:
    case Op::kExpect:
    case Op::kStoreMemory:
      return false;
    default:
      return !is_stored(op) && !leaves(op);
  }
}

std::optional<Op> find_op(std::string_view text) {
  for (int n = 0; n < kNumOps; ++n)
    if (info(static_cast<Op>(n)).text == text) return static_cast<Op>(n);
  return {};
}

std::optional<uint32_t> number(const std::string& text) {
  uint32_t value = 0;
  if (text.starts_with("0x") ? absl::SimpleHexAtoi(text, &value) : absl::SimpleAtoi(text, &value))
    return value;
  return {};
}

class Parser {
 public:
  Parsed parse(std::string_view text) {
    int line_number = 0;
    for (const std::string& whole : std::vector<std::string>(absl::StrSplit(std::string(text), '\n'))) {
      ++line_number;
      const std::string line = whole.substr(0, whole.find('#'));
      words_ = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
      if (words_.empty()) continue;
      if (const std::string error = read(); !error.empty()) {
        parsed_.error = absl::StrCat("line ", line_number, ": ", error);
        break;
      }
    }
    return std::move(parsed_);
  }

 private:
  /// @return  what is wrong with the words of a line
  std::string read() {
    size_t at = 0;
    std::string name;
    if (words_[0].front() == '%') {
      if (words_.size() < 3 || words_[1] != "=") return "no operation behind the name";
      name = words_[0];
      at = 2;
    }
    const std::optional<Op> op = find_op(words_[at]);
    if (!op) return absl::StrCat("no operation \"", words_[at], "\"");
    if (gives_value(*op) == name.empty())
      return absl::StrCat(words_[at],
                          name.empty() ? " gives a value, which needs a name" : " gives no value");
    Node node = {.op = *op};
    const OpInfo& row = info(*op);
    for (int n = 0; n < row.operands; ++n) {
      if (++at == words_.size()) return "too few operands";
      const auto found = names_.find(words_[at]);
      if (found == names_.end()) return absl::StrCat("no value ", words_[at], " so far");
      node.operands[n] = found->second;
    }
    if (row.immediate != kNoImmediate) {
      const std::optional<uint32_t> value = ++at < words_.size() ? number(words_[at]) : std::nullopt;
      if (!value) return "no number";
      node.immediate = *value;
    }
    if (++at < words_.size() && words_[at].front() == '@') {
      const std::optional<uint32_t> step = number(words_[at++].substr(1));
      if (!step || *step > 255) return "no instruction behind @";
      node.step = static_cast<uint8_t>(*step);
    }
    if (at < words_.size()) return absl::StrCat("\"", words_[at], "\" is too much");
    if (parsed_.graph.is_full()) return "too many nodes";
    const Id id = parsed_.graph.append(node);
    if (!name.empty()) names_[name] = id;
    return "";
  }

  Parsed parsed_;
  std::vector<std::string> words_;
  std::map<std::string, Id> names_;
};

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const OpInfo& row = info(node.op);
    if (gives_value(node.op)) absl::StrAppend(&text, "%", n, " = ");
    absl::StrAppend(&text, row.text);
    for (int i = 0; i < row.operands; ++i) absl::StrAppend(&text, " %", node.operands[i]);
    if (row.immediate == kBits)
      absl::StrAppendFormat(&text, " 0x%x", node.immediate);
    else if (row.immediate != kNoImmediate)
      absl::StrAppend(&text, " ", node.immediate);
    if (node.step != 0) absl::StrAppend(&text, " @", node.step);
    text += '\n';
  }
  return text;
}

Parsed parse(std::string_view text) { return Parser().parse(text); }

}  // namespace v3d::qpu::graph
