#include "gpu/qpu/run/vc4_step.h"

namespace v3d::qpu::vc4 {

#define V3D_ROW(n)                                                                                       \
  splat(small_immediate(n)), splat(small_immediate((n) + 1)), splat(small_immediate((n) + 2)),           \
      splat(small_immediate((n) + 3)), splat(small_immediate((n) + 4)), splat(small_immediate((n) + 5)), \
      splat(small_immediate((n) + 6)), splat(small_immediate((n) + 7))
const Lanes kImmediates[64] = {V3D_ROW(0),  V3D_ROW(8),  V3D_ROW(16), V3D_ROW(24),
                               V3D_ROW(32), V3D_ROW(40), V3D_ROW(48), V3D_ROW(56)};
#undef V3D_ROW

namespace {

using Target = StepTarget::Target;

Lanes loaded(const Lanes& a, const Lanes&) { return a; }

bool takes_floats(Op op) { return op != Op::kReserved && (info(op).floats & kTakesFloats); }

// The A port has one converter: it makes floats if any operation that takes its value is one of floats.
bool port_a_is_float(const Instruction& i) {
  const bool add_takes_it = i.add_a == kMuxA || (info(add_op(i.op_add)).operands == 2 && i.add_b == kMuxA);
  const bool mul_takes_it = i.mul_a == kMuxA || i.mul_b == kMuxA;
  return (add_takes_it && takes_floats(add_op(i.op_add))) || (mul_takes_it && takes_floats(mul_op(i.op_mul)));
}

Source make_source(const Instruction& i, uint8_t mux) {
  Source source;
  if (mux <= kMuxR5) {
    source.offset = register_offset(Thread::kAccumulators + mux);
    source.from_accumulator = mux < kMuxR4;
    if (mux == kMuxR4 && i.pm) {
      source.unpack = i.unpack;
      source.to_float = true;
    }
  } else if (mux == kMuxA) {
    source.offset = register_offset(i.raddr_a < kFirstPort ? i.raddr_a : Thread::kPortA);
    if (!i.pm) {
      source.unpack = i.unpack;
      source.to_float = port_a_is_float(i);
    }
  } else if (i.signal == Signal::kSmallImmediate) {
    source.offset = static_cast<uint16_t>(i.raddr_b * sizeof(Lanes));
    source.immediate = 1;
  } else {
    source.offset = register_offset(i.raddr_b < kFirstPort ? Thread::kFileB + i.raddr_b : Thread::kPortB);
  }
  return source;
}

Condition make_condition(Cond cond) {
  switch (cond) {
    case Cond::kNever:
      return {};
    case Cond::kAlways:
      return kAlways;
    default: {
      const int code = static_cast<int>(cond) - static_cast<int>(Cond::kZs);
      return {.flag = static_cast<uint8_t>(code / 2), .invert = code % 2 != 0};
    }
  }
}

StepTarget find_place(Files column, uint8_t waddr) {
  if (waddr < kFirstPort)
    return {Target::kRegister, WritePort::kNone,
            register_offset((column == kFileB ? Thread::kFileB : 0) + waddr)};
  const WritePort port = write_address(column, waddr).port;
  const auto accumulator = [](Target target, int n) {
    return StepTarget{target, WritePort::kNone, register_offset(Thread::kAccumulators + n)};
  };
  switch (port) {
    case WritePort::kR0:
    case WritePort::kR1:
    case WritePort::kR2:
    case WritePort::kR3:
      return accumulator(Target::kRegister, static_cast<int>(port) - static_cast<int>(WritePort::kR0));
    case WritePort::kR5Quads:
      return accumulator(Target::kQuads, 5);
    case WritePort::kR5Lane0:
      return accumulator(Target::kLane0, 5);
    case WritePort::kNop:
      return {};
    default:
      return {Target::kPort, port, 0};
  }
}

void set_destination(const Instruction& i, bool is_mul, Half& half) {
  const Files to = column(i, is_mul);
  const uint8_t waddr = is_mul ? i.waddr_mul : i.waddr_add;
  half.to = find_place(to, waddr);
  half.condition = make_condition(is_mul ? i.cond_mul : i.cond_add);
  half.pack_mode = i.pack;
  if (i.pack == 0) return;
  if (i.pm) {
    if (is_mul) half.pack = Half::Pack::kToUnorm8;
  } else if (to == kFileA && waddr < kFirstPort) {
    half.pack = Half::Pack::kToA;
  }
}

Half make_half(const Instruction& i, bool is_mul) {
  Half half;
  half.op = is_mul ? mul_op(i.op_mul) : add_op(i.op_add);
  if (half.op == Op::kNop) return half;
  set_destination(i, is_mul, half);
  half.alu = is_move(i, is_mul) ? loaded : find_alu(half.op);
  half.carry = is_mul ? nullptr : find_carry(half.op);
  half.a = make_source(i, is_mul ? i.mul_a : i.add_a);
  half.b = make_source(i, is_mul ? i.mul_b : i.add_b);
  return half;
}

// The value of an immediate comes to both halves through a port.
Half make_loaded_half(const Instruction& i, bool is_mul) {
  Half half;
  half.op = is_mul ? Op::kV8min : Op::kOr;
  set_destination(i, is_mul, half);
  half.alu = loaded;
  half.a = half.b = {.offset = register_offset(Thread::kPortB)};
  return half;
}

// What a word fetches through a file: ports do what they do whether an operand takes the value or not, but
// for addresses that are none.
ReadPort port_of(const Instruction& i, Files file) {
  const uint8_t raddr = file == kFileA ? i.raddr_a : i.raddr_b, mux = file == kFileA ? kMuxA : kMuxB;
  if (raddr < kFirstPort || (file == kFileB && i.signal == Signal::kSmallImmediate)) return ReadPort::kNone;
  const ReadPort port = read_address(file, raddr).port;
  const bool taken = i.add_a == mux || i.add_b == mux || i.mul_a == mux || i.mul_b == mux;
  return taken || (port != ReadPort::kNop && port != ReadPort::kUnmapped) ? port : ReadPort::kNone;
}

}  // namespace

Step make_step(const Instruction& i) {
  Step step;
  step.instruction = i;
  step.signal = i.signal;
  step.flaw = flaw(i);
  if (step.flaw) return step;
  switch (i.form()) {
    case Form::kBranch:
      set_destination(i, false, step.add);
      set_destination(i, true, step.mul);
      step.kind = Step::Kind::kBranch;
      return step;
    case Form::kSemaphore:
      step.is_semaphore = true;
      [[fallthrough]];
    case Form::kLoadImmediate:
      step.has_immediate = true;
      step.add = make_loaded_half(i, false);
      step.mul = make_loaded_half(i, true);
      step.add_sets_flags = i.sf;
      break;
    case Form::kAlu:
      step.add = make_half(i, false);
      step.mul = make_half(i, true);
      step.read_a = port_of(i, kFileA);
      step.read_b = port_of(i, kFileB);
      step.reads_port = step.read_a != ReadPort::kNone || step.read_b != ReadPort::kNone;
      step.reads_varying = step.read_a == ReadPort::kVarying || step.read_b == ReadPort::kVarying;
      step.add_sets_flags = i.sf && step.add.alu;
      step.mul_sets_flags = i.sf && !step.add.alu && step.mul.alu;
      step.rotates = rotates(i) && step.mul.alu;
      step.rotate_code = i.raddr_b;
      break;
  }
  // Where nothing is written and no flag is set, nothing is computed.
  for (Half* half : {&step.add, &step.mul}) {
    const bool sets_flags = half == &step.add ? step.add_sets_flags : step.mul_sets_flags;
    if (half->to.target == Target::kNone && !sets_flags) half->alu = nullptr;
  }
  step.kind = Step::Kind::kGeneral;
  return step;
}

}  // namespace v3d::qpu::vc4
