#include "shim/board/store_decoder.h"

#include <cstring>

namespace v3d::shim {
#if defined(__x86_64__)
namespace {

constexpr uint64_t kArithmeticFlags = 0x8d5;  // CF, PF, AF, ZF, SF, OF

/// What of an instruction does not depend on its operation.
struct Parts {
  uint8_t rex = 0, opcode = 0, modrm = 0;
  bool half = false;              // operands of 16 bits
  const uint8_t* next = nullptr;  // behind the operand in memory: the immediate, if there is one

  uint32_t width() const { return rex & 8 ? 8 : half ? 2 : 4; }
  uint32_t reg() const { return (modrm >> 3 & 7) | (rex & 4 ? 8 : 0); }
  uint32_t extension() const { return modrm >> 3 & 7; }
};

/// Prefixes, one opcode byte, and an operand in memory. False: something else.
bool parse(const uint8_t* code, Parts* parts) {
  for (;; ++code) {
    if (*code == 0x66) {
      parts->half = true;
    } else if (*code != 0x2e && *code != 0x3e && *code != 0xf0) {
      break;
    }
  }
  if ((*code & 0xf0) == 0x40) parts->rex = *code++;
  parts->opcode = *code++;
  parts->modrm = *code++;
  const uint32_t mod = parts->modrm >> 6, rm = parts->modrm & 7;
  if (mod == 3) return false;
  uint32_t displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  if (rm == 4) {
    const uint8_t sib = *code++;
    if (mod == 0 && (sib & 7) == 5) displacement = 4;
  } else if (mod == 0 && rm == 5) {
    displacement = 4;
  }
  parts->next = code + displacement;
  return true;
}

uint64_t cut(uint64_t value, uint32_t width) {
  return width == 8 ? value : value & ((uint64_t{1} << width * 8) - 1);
}

int64_t immediate(const uint8_t* at, uint32_t bytes) {
  switch (bytes) {
    case 1:
      return static_cast<int8_t>(*at);
    case 2: {
      int16_t value;
      memcpy(&value, at, sizeof value);
      return value;
    }
    default: {
      int32_t value;
      memcpy(&value, at, sizeof value);
      return value;
    }
  }
}

/// a op b of 32 bits, as the processor computes it, with its flags. @param operation  of the opcode's bits
/// 5:3
#define V3D_ALU(name)                                                  \
  __asm__("leaq -128(%%rsp), %%rsp; pushq %[f]; popfq; " name          \
          " %[b], %[a]; pushfq; popq %[f]; "                           \
          "leaq 128(%%rsp), %%rsp" /* the red zone stays what it is */ \
          : [a] "+r"(a), [f] "+r"(f)                                   \
          : [b] "r"(b)                                                 \
          : "cc", "memory")
template <typename T>
bool operate(uint32_t operation, T* value, T b, uint64_t* flags) {
  T a = *value;
  uint64_t f = *flags & kArithmeticFlags;
  switch (operation) {
    case 0:
      V3D_ALU("add");
      break;
    case 1:
      V3D_ALU("or");
      break;
    case 2:
      V3D_ALU("adc");
      break;
    case 3:
      V3D_ALU("sbb");
      break;
    case 4:
      V3D_ALU("and");
      break;
    case 5:
      V3D_ALU("sub");
      break;
    case 6:
      V3D_ALU("xor");
      break;
    default:  // cmp stores nothing
      return false;
  }
  *value = a;
  *flags = (*flags & ~kArithmeticFlags) | (f & kArithmeticFlags);
  return true;
}
#undef V3D_ALU

bool operate(uint32_t operation, uint32_t width, uint64_t old, uint64_t b, uint64_t* result,
             uint64_t* flags) {
  if (width == 4) {
    auto value = static_cast<uint32_t>(old);
    if (!operate(operation, &value, static_cast<uint32_t>(b), flags)) return false;
    *result = value;
    return true;
  }
  *result = old;
  return width == 8 && operate(operation, result, b, flags);
}

}  // namespace

bool execute_store(const uint8_t* code, uint64_t old, StoppedThread* thread, Store* store) {
  Parts p;
  if (!parse(code, &p)) return false;
  uint32_t width = p.width();
  const uint8_t* end = p.next;
  uint64_t value;
  const uint64_t source = thread->registers[p.reg()];
  switch (p.opcode) {
    case 0x88:  // mov r8: without REX the numbers 4 to 7 are ah, ch, dh, bh
      width = 1;
      value = !p.rex && p.reg() >= 4 ? thread->registers[p.reg() - 4] >> 8 : source;
      break;
    case 0x89:
      value = source;
      break;
    case 0xc6:
    case 0xc7: {
      if (p.extension() != 0) return false;
      if (p.opcode == 0xc6) width = 1;
      const uint32_t bytes = width < 4 ? width : 4;
      value = static_cast<uint64_t>(immediate(end, bytes));
      end += bytes;
      break;
    }
    case 0x87: {  // xchg: an atomic store
      value = source;
      const uint64_t loaded = cut(old, width);
      uint64_t& to = thread->registers[p.reg()];
      to = width == 2 ? (to & ~uint64_t{0xffff}) | loaded : loaded;
      break;
    }
    case 0x81:
    case 0x83: {
      const uint32_t bytes = p.opcode == 0x83 ? 1 : width == 2 ? 2 : 4;
      if (!operate(p.extension(), width, old, static_cast<uint64_t>(immediate(end, bytes)), &value,
                   &thread->flags))
        return false;
      end += bytes;
      break;
    }
    default:  // add, or, ... with a register
      if (p.opcode >= 0x40 || (p.opcode & 7) != 1) return false;
      if (!operate(p.opcode >> 3, width, old, source, &value, &thread->flags)) return false;
      break;
  }
  *store = {static_cast<uint32_t>(end - code), width, cut(value, width)};
  return true;
}

#endif
}  // namespace v3d::shim
