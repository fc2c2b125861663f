#include "shim/board/register_store.h"

#include <atomic>

#include "ioctl/link/firmware.h"
#include "shim/board/firmware_calls.h"
#include "shim/board/store_decoder.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/text.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {

#if defined(__x86_64__)
namespace {

constexpr int kRegisterOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/// Once for each register.
void say_unknown(uint32_t offset, const char* what) {
  static constinit std::atomic<uint32_t> told[wire::kRegisterBytes / 4 / 32] = {};
  const uint32_t word = offset / 4;
  if (told[word / 32].fetch_or(1u << word % 32) >> word % 32 & 1) return;
  complain("/dev/mem: not implemented: ", what,
           Text<48>().add(" the V3D's register 0x").add(uint64_t{offset}, 16).c_str());
}

void write_register(uint32_t offset, uint32_t value) {
  uint32_t nothing;
  const int error = call_firmware(wire::FirmwareCall::kWriteRegister, offset, value, 0, &nothing);
  if (error == -EINVAL) say_unknown(offset, "stores to");
  static constinit std::atomic<bool> told{false};
  if (error && error != -EINVAL && !told.exchange(true))
    complain("/dev/mem: the daemon does not take what is stored to the V3D's registers");
}

void say_undecoded(const uint8_t* code) {
  Text<64> bytes;
  for (int n = 0; n < 15; ++n) bytes.add(' ').add(uint64_t{code[n]} >> 4, 16).add(uint64_t{code[n]} & 15, 16);
  complain("/dev/mem: not implemented: a store to the V3D's registers by the instruction", bytes.c_str());
}

}  // namespace

uint64_t find_register_page(uint64_t address) {
  const uint64_t page = address & ~uint64_t{wire::kRegisterBytes - 1};
  uint64_t mark = 0;
  return copy_from_user(&mark, page + wire::kRegisterMark, sizeof(mark)) && mark == wire::kRegisterMagic
             ? page
             : 0;
}

bool execute_register_store(const siginfo_t& info, uint64_t page, ucontext_t* context) {
  constexpr long kWrite = 2;  // of the error code of page faults
  const auto address = raw::address_of(info.si_addr);
  greg_t* const registers = context->uc_mcontext.gregs;
  if (info.si_code != SEGV_ACCERR || !(registers[REG_ERR] & kWrite)) return false;
  const auto offset = static_cast<uint32_t>(address - page);
  uint8_t code[16] = {};
  copy_from_user(code, static_cast<uint64_t>(registers[REG_RIP]), 15);
  uint64_t old = 0;
  copy_from_user(&old, address, offset + 8 <= wire::kRegisterBytes ? 8 : wire::kRegisterBytes - offset);
  StoppedThread thread;
  for (int n = 0; n < 16; ++n) thread.registers[n] = static_cast<uint64_t>(registers[kRegisterOrder[n]]);
  thread.flags = static_cast<uint64_t>(registers[REG_EFL]);
  Store store;
  if (!execute_store(code, old, &thread, &store)) {
    say_undecoded(code);
    return false;
  }
  if (offset % 4 || store.width < 4) {
    say_unknown(offset & ~3u, "stores of less than a word to");
  } else {
    write_register(offset, static_cast<uint32_t>(store.value));
    if (store.width == 8 && offset + 4 < wire::kRegisterBytes)
      write_register(offset + 4, static_cast<uint32_t>(store.value >> 32));
  }
  for (int n = 0; n < 16; ++n) registers[kRegisterOrder[n]] = static_cast<greg_t>(thread.registers[n]);
  registers[REG_EFL] = static_cast<greg_t>(thread.flags);
  registers[REG_RIP] += store.length;
  return true;
}

#endif

}  // namespace v3d::shim
