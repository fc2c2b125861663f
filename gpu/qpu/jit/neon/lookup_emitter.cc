#include "gpu/qpu/jit/neon/lookup_emitter.h"

#include "gpu/qpu/jit/neon/frame.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;

const Register kOut = x20;

}  // namespace

bool LookupEmitter::has_code(const Node& node) {
  switch (node.op) {
    case Op::kLoad:
    case Op::kLoadMask:
    case Op::kPixel:
    case Op::kStoreOutput:
    case Op::kStoreMemory:
      return true;
    default:
      return lane_operation(node.op) || other_operation(node.op);
  }
}

void LookupEmitter::begin(Label& body) {
  save_registers();
  masm_.Mov(kThread, x0);
  masm_.Mov(kTextures, x1);
  masm_.Mov(kMiddleOfMemory, x2);
  masm_.Mov(kOut, x3);
  masm_.B(&body);
}

void LookupEmitter::end() {
  restore_registers();
  masm_.Ret();
  unsure_results();
  partial_gathers();
}

Emitter::Memory LookupEmitter::home_of(const Node& node) {
  if (node.op == Op::kTextureWord) return texture_word(node);
  return {kThread, int64_t{node.immediate}};
}

void LookupEmitter::emit_own(const Node& node) {
  switch (node.op) {
    case Op::kLoadMask:
      return mask_from(node, MemOperand(kThread, int64_t{node.immediate}));
    case Op::kPixel:
      return move(Way::kLoad, result(node),
                  in_pool(node.immediate != 0 ? rows_of_block(rows_) : columns_of_block(columns_)));
    case Op::kStoreOutput: {
      const Operand from = operand(node.operands[0], 0);
      store_parts(from, {kOut, int64_t{node.immediate} * kLaneBytes});
      return consume(node);
    }
    case Op::kStoreMemory:
      return store_memory(node);
    default:  // sources, which are loaded where they are needed
      return;
  }
}

void LookupEmitter::store_memory(const Node& node) {
  const int address = in_register(node.operands[0]), data = in_register(node.operands[1]),
            lanes = unit_of_lanes(node.operands[2]);
  scatter_words(node, address, data, lanes);
  consume(node);
}

}  // namespace v3d::qpu::jit::neon
