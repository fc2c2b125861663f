/// Hazard facts are what one instruction touches, as the rules of scheduling ask for it.
#pragma once

#include <cstdint>

#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/register_set.h"

namespace v3d::qpu {

struct HazardFacts {
  // Registers. Writes to rf registers of the ALUs and of the signal with destination; `magic_writes` are
  // those of both behind magic addresses, and `implicit` is the write of ldunif and ldunifa to
  // IsaProperties::implicit.
  RegisterSet reads, alu_writes, signal_writes, magic_writes;
  RegisterSet loads;  ///< of all writes those of signals
  bool implicit = false;

  bool ldvary = false, thrsw = false, ldtmu = false, wrtmuc = false;
  bool main_uniforms = false, second_uniform = false;  ///< one, or more than one word of the main stream
  bool loads_unifa = false, writes_unifa = false;
  bool sfu = false;              ///< an operation of the SFU class
  bool magic_sfu = false;        ///< 4.2: a write to the SFU's addresses
  bool sfu_elsewhere = false;    ///< an operation of the SFU class whose destination is no rf register
  bool unknown_address = false;  ///< writes to an address without a meaning
  bool tlb_write = false, tlb_read = false;
  uint8_t tmu_writes = 0;      ///< registers of the TMU, tmuc too
  uint8_t tmu_data = 0;        ///< of those tmud
  uint8_t tmu_parameters = 0;  ///< of those tmudref and tmuoff, which general lookups take for data
  bool tmu_config = false;     ///< tmuc
  bool tmu_sequence = false;   ///< opens or continues a sequence
  bool tmu_terminator = false;
  bool tmu_general = false;         ///< ... of a general lookup
  bool tmu_uniform_config = false;  ///< ... which takes its configuration with it
  bool tmu_write_and_load = false;  ///< a TMU write beside ldtmu, where that counts as a peripheral
  bool tsy = false, syncb = false;
  bool vpm_read = false, vpm_write = false, vpm_wait = false, tmu_wait = false;
  bool stores_row = false, loads_row = false;  ///< STVPMV, LDVPMV_IN
  bool sums_halves = false;                    ///< VFADD, VFSUB or VFCMP whose result goes somewhere
  bool setmsf = false, msf = false, multop = false, umul24 = false;
  bool branch_by_msf = false;      ///< a branch that decides by lanes that the sample mask chooses
  bool rotates = false;            ///< ROT or ROTQ
  bool rotates_elsewhere = false;  ///< ... to rep, quad or the TMU
  bool rotate_signal = false;      ///< 4.2
  RegisterSet rotate_reads;        ///< ... registers that it rotates
  bool idle_immediate = false;     ///< 7.1: a small immediate of an ALU that does nothing
  uint8_t peripherals = 0;         ///< of which one word may use one
};

/// @param instruction  of the word; of a branch only branch_by_msf is told
HazardFacts facts_of(chip::Generation generation, uint64_t word, const Instruction& instruction);

/// All registers that it writes, but for what lands later: C of ldvary, and r4 of the SFU.
RegisterSet writes_of(chip::Generation generation, const HazardFacts& facts);

}  // namespace v3d::qpu
