#include "gpu/perf/record/vc4_batch_recorder.h"

#include "gpu/perf/record/shape.h"
#include "gpu/qpu/run/vc4_vpm.h"

namespace v3d::timing {

namespace vc4 = qpu::vc4;
using vc4::ReadPort;
using vc4::Signal;
using vc4::WritePort;

void Recorder::Vc4BatchRecorder::begin(size_t number, vc4::Thread& thread) {
  PathRecorder::begin(number, thread.uniforms);
  in_ = {};
  in_.uniforms = thread.uniforms;
  idle_ = false;
  if (thread.tmu) thread.tmu->set_footprint(&r_.footprint_);
}

void Recorder::Vc4BatchRecorder::before(const vc4::Thread& t, uint64_t) {
  const uint32_t number = number_of(t.pc);
  if (r_.failed() || in_.is_issued) return;
  in_.is_issued = true;
  issue(number);
}

void Recorder::Vc4BatchRecorder::direct_lookup(const vc4::Thread&, int unit, const Lanes& addresses) {
  if (r_.failed()) return;
  set_direct_shape(unit_of(unit), addresses, &r_.shape_, &lines_of_lookup_);
  add_lookup();
}

void Recorder::Vc4BatchRecorder::texture_lookup(const vc4::Thread&, const vc4::Lookup& lookup) {
  if (r_.failed()) return;
  const int inputs = 1 + lookup.has_t + lookup.has_r + lookup.has_b;
  set_packed_shape(unit_of(lookup.unit), inputs, r_.footprint_, &r_.shape_, &lines_of_lookup_);
  add_lookup();
}

void Recorder::Vc4BatchRecorder::transfer(const vc4::Thread& t, bool stores, GpuAddr address) {
  if (r_.failed()) return;
  at_.varies = true;
  const vc4::VpmDma& dma = t.pending.dma;
  const vc4::DmaRows rows = stores ? vc4::rows_of_store(dma) : vc4::rows_of_load(dma);
  uint32_t count = 0, previous = ~0u;
  for (uint32_t row = 0; row < rows.count; ++row) {
    const GpuAddr first = address + row * rows.pitch, last = first + rows.bytes - 1;
    for (uint32_t line = first / kLineBytes; line <= last / kLineBytes; ++line) {
      if (line == previous) continue;
      previous = line;
      add_line(line);
      ++count;
    }
  }
  add(Kind::kTransfer, count | (stores ? Event::kStores : 0));
}

void Recorder::Vc4BatchRecorder::after(const vc4::Thread& t, uint64_t word, const char* error) {
  in_.is_issued = false;
  if (error) return r_.fail("a batch hangs");
  if (r_.failed()) return;
  const vc4::Instruction i = vc4::decode(word);
  at_.varies |= i.form() == vc4::Form::kBranch;
  add_uniforms(t.uniforms);
  if (i.form() == vc4::Form::kSemaphore) {
    at_.varies = true;
    add(Kind::kSemaphore, i.immediate & 31);
  }
  add_reads(i);
  add_writes(i);
  add_signal(i.signal);
}

void Recorder::Vc4BatchRecorder::finished(const vc4::Thread& t, Next next) {
  if (r_.failed()) return;
  if (next == Next::kEnd) {
    add(Kind::kEnd);
    if (r_.failed()) return;
    idle_ = true;
    PathRecorder::end();
    if (t.tmu && !r_.is_watching()) t.tmu->set_footprint(nullptr);  // user programs share one
    return;
  }
  if (in_.switch_in != 0 && --in_.switch_in == 0) add(Kind::kSwitch);
}

/// The words that the instruction took from the stream, which it may have led elsewhere, too.
void Recorder::Vc4BatchRecorder::add_uniforms(GpuAddr to) {
  constexpr GpuAddr kMost = 16;  // bytes of an instruction; more is another stream
  if (to - in_.uniforms > kMost) {
    at_.varies = true;
    in_.uniform_line = ~0u;
    in_.uniforms = to;
  }
  for (; in_.uniforms != to; in_.uniforms += 4) {
    ++at_.uniform_words;
    const uint32_t line = in_.uniforms / kLineBytes;
    if (line == in_.uniform_line) {
      add(Kind::kUniforms, Event::kWord);
      continue;
    }
    add(Kind::kUniforms, line == in_.uniform_line + 1 && line != 0 ? Event::kNextLine : Event::kLine);
    add_line(line);
    in_.uniform_line = line;
  }
}

void Recorder::Vc4BatchRecorder::add_reads(const vc4::Instruction& i) {
  if (i.form() != vc4::Form::kAlu) return;
  const auto port_of = [](vc4::Files file, uint8_t address) {
    return address < vc4::kFirstPort ? ReadPort::kNone : vc4::read_address(file, address).port;
  };
  const ReadPort a = port_of(vc4::kFileA, i.raddr_a);
  const ReadPort b = i.signal == Signal::kSmallImmediate ? ReadPort::kNone : port_of(vc4::kFileB, i.raddr_b);
  const auto reads = [&](ReadPort port) { return a == port || b == port; };
  if (reads(ReadPort::kVarying)) add(Kind::kVarying);
  if (reads(ReadPort::kVpmLoadWait)) add(Kind::kVpmWait, 0);
  if (reads(ReadPort::kVpmStoreWait)) add(Kind::kVpmWait, 1);
  if (reads(ReadPort::kMutex)) {
    at_.varies = true;
    add(Kind::kMutex, 1);
  }
}

void Recorder::Vc4BatchRecorder::add_writes(const vc4::Instruction& i) {
  if (i.form() == vc4::Form::kBranch) return;
  for (const bool mul : {false, true}) {
    const uint8_t address = mul ? i.waddr_mul : i.waddr_add;
    if (address < vc4::kFirstPort || (mul ? i.cond_mul : i.cond_add) == vc4::Cond::kNever) continue;
    const vc4::WriteAddress& to = vc4::write_address(column(i, mul), address);
    if (to.unit == vc4::Unit::kTlb) access_tlb();
    if (to.port == WritePort::kTmuNoswap) in_.no_swap = true;
    if (to.port == WritePort::kMutexRelease) add(Kind::kMutex, 0);
  }
}

void Recorder::Vc4BatchRecorder::add_signal(Signal signal) {
  constexpr uint8_t kDelaySlots = 2;
  switch (signal) {
    case Signal::kLoadTmu0:
    case Signal::kLoadTmu1:
      add(Kind::kRead, signal == Signal::kLoadTmu1);
      break;
    case Signal::kSwitch:
    case Signal::kLastSwitch:
      in_.switch_in = kDelaySlots + 1;
      break;
    case Signal::kWaitScoreboard:
    case Signal::kColorLoad:
    case Signal::kColorLoadEnd:
      access_tlb();
      break;
    default:
      break;
  }
}

void Recorder::Vc4BatchRecorder::access_tlb() {
  if (!in_.wrote) add(Kind::kTlb);
  in_.wrote = true;
}

}  // namespace v3d::timing
