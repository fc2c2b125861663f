#include "gpu/qpu/jit/code/listing.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace v3d::qpu::jit {
namespace {

constexpr size_t kBytesOfALine = 32;

void append_bytes(std::string& text, std::span<const uint8_t> code, size_t begin, size_t end) {
  for (size_t at = begin; at < end; at += kBytesOfALine) {
    absl::StrAppendFormat(&text, "      %05x ", at);
    for (size_t n = at; n < std::min(end, at + kBytesOfALine); ++n)
      absl::StrAppendFormat(&text, " %02x", code[n]);
    text += '\n';
  }
}

void append_block(std::string& text, const flow::Flow& flow, uint32_t number) {
  const flow::Block& block = flow.blocks[number];
  absl::StrAppendFormat(&text, "  block %d: %d instructions from %d", number, block.count,
                        flow.nodes[block.first].index);
  if (block.loops != 0) absl::StrAppendFormat(&text, ", in %d loops", block.loops);
  if (block.resumes) text += ", after a thread switch";
  text += '\n';
}

}  // namespace

std::string listing(const flow::Flow& flow, const CodeTables& tables, std::span<const uint8_t> code) {
  std::string text = absl::StrFormat("%d instructions, %d blocks, %d bytes of host code\n",
                                     flow.instructions.size(), flow.blocks.size(), code.size());
  append_bytes(text, code, 0, tables.marks.empty() ? 0 : tables.marks.front().offset);
  for (size_t m = 0; m < tables.marks.size(); ++m) {
    const CodeMark& mark = tables.marks[m];
    if (mark.node != flow::kNowhere) {
      const flow::Node& node = flow.nodes[mark.node];
      if (mark.node == flow.blocks[node.block].first && !mark.out_of_the_way)
        append_block(text, flow, node.block);
      const Instruction* const instruction = flow.instruction(node);
      absl::StrAppendFormat(&text, "    %4d  %s\n", node.index,
                            instruction ? disassemble(flow.setting.generation, *instruction) : "not known");
    } else {
      text += m + 1 == tables.marks.size() ? "  routines and constants\n" : "  out of the way\n";
    }
    const bool is_last = m + 1 == tables.marks.size();
    append_bytes(text, code, mark.offset, is_last ? code.size() : tables.marks[m + 1].offset);
  }
  return text;
}

}  // namespace v3d::qpu::jit
