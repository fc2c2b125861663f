#include "gpu/qpu/run/vc4_actions.h"

#include <array>
#include <cstddef>

#include "gpu/base/lanes.h"
#include "gpu/qpu/isa/vc4_access.h"
#include "gpu/qpu/run/vc4_alu.h"
#include "gpu/qpu/run/vc4_ports.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::qpu::vc4 {
namespace {

using Target = StepTarget::Target;

constexpr uint16_t kPortA = register_offset(Thread::kPortA), kPortB = register_offset(Thread::kPortB),
                   kConverted = register_offset(Thread::kConverted),
                   kOfAdd = register_offset(Thread::kResults), kOfMul = register_offset(Thread::kResults + 1),
                   kR4 = register_offset(Thread::kAccumulators + 4);

// ---- What actions do

/// For who finds that there is no memory, or that the thread hangs.
inline void set_pc(Thread& t, const Action& x) { t.pc = (t.pc & ~(Chunk::kBytes - 1)) + x.index * 8u; }

const char* load_uniform(Thread& t, const Action& x) {
  set_pc(t, x);
  register_at(t, x.to) = splat(next_uniform(t));
  return nullptr;
}

const char* load_varying(Thread& t, const Action& x) {
  const uint32_t n = t.pending.next_varying;
  register_at(t, x.to) = n < t.num_varyings ? Lanes(t.varyings[n].vp) : Lanes{};
  return nullptr;
}

const char* end_varying(Thread& t, const Action&) {
  land_varying(t);
  return nullptr;
}

/// @param immediate  the port  @param a  its file
const char* load_port(Thread& t, const Action& x) {
  register_at(t, x.to) = read_port(t, static_cast<ReadPort>(x.immediate), static_cast<Files>(x.a));
  return nullptr;
}

const char* load_immediate(Thread& t, const Action& x) {
  register_at(t, x.to) = splat(x.immediate);
  return nullptr;
}

/// @param a  the mode
const char* load_lanes(Thread& t, const Action& x) {
  register_at(t, x.to) = immediate_lanes(x.immediate, static_cast<ImmediateMode>(x.a));
  return nullptr;
}

const char* copy(Thread& t, const Action& x) {
  register_at(t, x.to) = register_at(t, x.a);
  return nullptr;
}

const char* copy_where(Thread& t, const Action& x) {
  Lanes& to = register_at(t, x.to);
  to = select(lanes_where(x.condition, t), register_at(t, x.a), to);
  return nullptr;
}

/// @param immediate  the port
const char* store_port(Thread& t, const Action& x) {
  set_pc(t, x);
  return write_port(t, static_cast<WritePort>(x.immediate), register_at(t, x.a), lanes_where(x.condition, t));
}

template <WritePort port>
const char* store_sfu(Thread& t, const Action& x) {
  t.r(4) = special_function(port, register_at(t, x.a));
  return nullptr;
}

template <int unit>
const char* load_tmu(Thread& t, const Action& x) {
  if (pop_tmu(t, unit, register_at(t, x.to))) [[likely]]
    return nullptr;
  set_pc(t, x);
  return kEmptyQueue;
}

const char* load_color(Thread& t, const Action& x) {
  set_pc(t, x);
  if (!t.tlb) return kNoTileBuffer;
  register_at(t, x.to) = t.tlb->load_color(t);
  return nullptr;
}

template <uint8_t code, bool to_float>
const char* unpack(Thread& t, const Action& x) {
  register_at(t, x.to) = unpacked(code, to_float, register_at(t, x.a));
  return nullptr;
}

template <uint8_t code>
const char* pack_unorm8(Thread& t, const Action& x) {
  Lanes& to = register_at(t, x.to);
  to = packed_to_unorm8(code, register_at(t, x.a), to);
  return nullptr;
}

// ---- Which actions they are

template <bool to_float>
constexpr std::array<ActionFn, 8> kUnpack = {copy,
                                             unpack<1, to_float>,
                                             unpack<2, to_float>,
                                             unpack<3, to_float>,
                                             unpack<4, to_float>,
                                             unpack<5, to_float>,
                                             unpack<6, to_float>,
                                             unpack<7, to_float>};
constexpr std::array<ActionFn, 8> kPackUnorm8 = {
    copy, nullptr, nullptr, pack_unorm8<3>, pack_unorm8<4>, pack_unorm8<5>, pack_unorm8<6>, pack_unorm8<7>};

ActionFn sfu_action(WritePort port) {
  switch (port) {
    case WritePort::kSfuRecip:
      return store_sfu<WritePort::kSfuRecip>;
    case WritePort::kSfuRecipsqrt:
      return store_sfu<WritePort::kSfuRecipsqrt>;
    case WritePort::kSfuExp:
      return store_sfu<WritePort::kSfuExp>;
    default:
      return store_sfu<WritePort::kSfuLog>;
  }
}

/// Ports at which a write neither waits nor costs more than an instruction.
bool has_action(WritePort port, bool sfu_at_once) {
  return is_quick(port) || is_tmu(port) || (sfu_at_once && is_sfu(port));
}

bool gives_operand_back(Op op) {
  switch (op) {
    case Op::kFmin:
    case Op::kFmax:
    case Op::kMin:
    case Op::kMax:
    case Op::kAnd:
    case Op::kOr:
    case Op::kV8min:
    case Op::kV8max:
      return true;
    default:
      return false;
  }
}

class Maker {
 public:
  Maker(const Step& step, bool sfu_at_once, std::vector<Action>& actions)
      : step_(step), sfu_at_once_(sfu_at_once), actions_(actions) {}

  bool make() {
    if (!signal_has_actions() || !halves_have_actions()) return false;
    fetch();
    if (step_.add_sets_flags || step_.mul_sets_flags) {
      with_flags(step_.add_sets_flags ? step_.add : step_.mul, step_.add_sets_flags ? step_.mul : step_.add);
    } else {
      both();
    }
    end();
    return true;
  }

 private:
  // ---- Whether there are any

  bool signal_has_actions() const {
    switch (step_.signal) {
      case Signal::kColorLoadEnd:
        return false;
      case Signal::kLoadTmu0:
      case Signal::kLoadTmu1:
      case Signal::kColorLoad:
        return !writes_port(step_.add) && !writes_port(step_.mul);  // which come after the load
      default:
        return true;
    }
  }

  static bool writes_port(const Half& half) { return half.alu && half.to.target == Target::kPort; }

  bool half_has_actions(const Half& half) const {
    if (!half.alu) return true;
    if (half.a.immediate && takes_immediate_b(half) && !copies(half)) return false;
    switch (half.to.target) {
      case Target::kNone:
      case Target::kRegister:
        break;
      case Target::kPort:
        if (half.pack != Half::Pack::kNone || !has_action(half.to.port, sfu_at_once_)) return false;
        break;
      default:
        return false;
    }
    return half.pack == Half::Pack::kNone || (half.pack == Half::Pack::kToUnorm8 &&
                                              half.condition == kAlways && kPackUnorm8[half.pack_mode & 7]);
  }

  bool halves_have_actions() const {
    const Half &add = step_.add, &mul = step_.mul;
    if (step_.kind != Step::Kind::kGeneral || step_.rotates || step_.is_semaphore ||
        step_.read_a == ReadPort::kMutex || step_.read_b == ReadPort::kMutex || !half_has_actions(add) ||
        !half_has_actions(mul))
      return false;
    // Only one of them is known to be first where both write the same.
    if (add.alu && mul.alu && add.to.target == Target::kRegister && mul.to.target == Target::kRegister &&
        add.to.offset == mul.to.offset)
      return false;
    if (writes_port(add) && writes_port(mul)) return false;
    // Conditions are as the flags were before.
    if (step_.add_sets_flags || step_.mul_sets_flags)
      return (!add.alu || add.condition == kAlways) && (!mul.alu || mul.condition == kAlways);
    return true;
  }

  // ---- Operands

  bool copies(const Half& half) const {
    const bool same = half.a.immediate == half.b.immediate && half.a.offset == half.b.offset &&
                      half.a.unpack == half.b.unpack;
    return step_.has_immediate || (same && gives_operand_back(half.op));
  }

  static bool takes_immediate_b(const Half& half) { return half.b.immediate && info(half.op).operands == 2; }

  static uint16_t place(const Source& s) { return s.unpack == 0 ? s.offset : kConverted; }
  static uint32_t value(const Source& s) { return kImmediates[s.offset / sizeof(Lanes)][0]; }

  static bool reads(const Half& half, uint16_t offset) {
    return (!half.a.immediate && place(half.a) == offset) || (!half.b.immediate && place(half.b) == offset);
  }

  void add(ActionFn run, uint16_t to, uint16_t a = 0, uint16_t b = 0, uint32_t immediate = 0,
           Condition condition = kAlways) {
    actions_.push_back({run, to, a, b, step_.index, condition, immediate});
  }

  void fetch_port(ReadPort port, Files file) {
    const uint16_t to = file == kFileA ? kPortA : kPortB;
    if (port == ReadPort::kNone) return;
    if (port == ReadPort::kUniform)
      add(load_uniform, to);
    else if (port == ReadPort::kVarying)
      add(load_varying, to);
    else
      add(load_port, to, file, 0, static_cast<uint32_t>(port));
  }

  void fetch() {
    const ReadPort a = step_.read_a, b = step_.read_b;
    if (step_.has_immediate) {
      const uint32_t immediate = step_.instruction.immediate;
      if (step_.instruction.unpack == kImmediate32)
        add(load_immediate, kPortB, 0, 0, immediate);
      else
        add(load_lanes, kPortB, step_.instruction.unpack, 0, immediate);
    }
    fetch_port(a, kFileA);
    if (a == b && (a == ReadPort::kUniform || a == ReadPort::kVpm || a == ReadPort::kVarying))
      add(copy, kPortB, kPortA);
    else
      fetch_port(b, kFileB);
    for (const Half* half : {&step_.add, &step_.mul}) {
      if (!half->alu) continue;
      for (const Source* s : {&half->a, &half->b}) {
        if (s->unpack == 0) continue;
        add((s->to_float ? kUnpack<true> : kUnpack<false>)[s->unpack & 7], kConverted, s->offset);
        return;  // there is one converter
      }
    }
  }

  // ---- Results

  void compute(const Half& half, uint16_t to) {
    if (copies(half)) {
      if (half.a.immediate)
        add(load_immediate, to, 0, 0, value(half.a));
      else
        add(copy, to, place(half.a));
    } else {
      const bool immediate_b = takes_immediate_b(half);
      add(find_action(half.op, half.a.immediate, immediate_b), to, place(half.a), place(half.b),
          half.a.immediate ? value(half.a)
          : immediate_b    ? value(half.b)
                           : 0);
    }
  }

  static uint16_t result_of(const Half& half, const Step& step) {
    return &half == &step.add ? kOfAdd : kOfMul;
  }

  static bool writes_directly(const Half& half) {
    return half.to.target == Target::kRegister && half.pack == Half::Pack::kNone && half.condition == kAlways;
  }

  void commit(const Half& half, uint16_t from) {
    switch (half.to.target) {
      case Target::kRegister:
        if (half.pack == Half::Pack::kToUnorm8)
          add(kPackUnorm8[half.pack_mode & 7], half.to.offset, from);
        else if (half.condition == kAlways)
          add(copy, half.to.offset, from);
        else
          add(copy_where, half.to.offset, from, 0, 0, half.condition);
        break;
      case Target::kPort:
        if (is_sfu(half.to.port))
          add(sfu_action(half.to.port), kR4, from);
        else
          add(store_port, 0, from, 0, static_cast<uint32_t>(half.to.port), half.condition);
        break;
      default:
        break;
    }
  }

  /// Where the result of a copy to a port is before.
  bool is_sent_as_it_is(const Half& half) const {
    return half.to.target == Target::kPort && copies(half) && !half.a.immediate;
  }

  void one(const Half& half) {
    if (writes_directly(half)) return compute(half, half.to.offset);
    if (is_sent_as_it_is(half)) return commit(half, place(half.a));
    const uint16_t result = result_of(half, step_);
    compute(half, result);
    commit(half, result);
  }

  /// Both read before one of them writes.
  void both() {
    const Half &add = step_.add, &mul = step_.mul;
    if (!add.alu || !mul.alu) {
      if (add.alu) one(add);
      if (mul.alu) one(mul);
      return;
    }
    const auto disturbs = [](const Half& writer, const Half& reader) {
      return (writer.to.target == Target::kRegister && reads(reader, writer.to.offset)) ||
             (writes_port(writer) && is_sfu(writer.to.port) && reads(reader, kR4));
    };
    if (!disturbs(add, mul)) {
      one(add);
      one(mul);
    } else if (!disturbs(mul, add)) {
      one(mul);
      one(add);
    } else {
      compute(add, kOfAdd);
      one(mul);
      commit(add, kOfAdd);
    }
  }

  /// @param half  sets flags
  void with_flags(const Half& half, const Half& other) {
    const uint16_t result = result_of(half, step_);
    compute(half, result);
    // Carry depends on the operands, of which a small immediate is in no register yet.
    if (half.a.immediate || half.b.immediate)
      add(load_immediate, kPortB, 0, 0, value(half.a.immediate ? half.a : half.b));
    const auto operand = [](const Source& s) { return s.immediate ? kPortB : place(s); };
    add(flags_action(half.op, half.carry != nullptr), result, operand(half.a), operand(half.b));
    if (other.alu) one(other);
    commit(half, result);
  }

  void end() {
    switch (step_.signal) {
      case Signal::kLoadTmu0:
        add(load_tmu<0>, kR4);
        break;
      case Signal::kLoadTmu1:
        add(load_tmu<1>, kR4);
        break;
      case Signal::kColorLoad:
        add(load_color, kR4);
        break;
      default:
        break;
    }
    if (step_.reads_varying) add(end_varying, 0);
  }

  const Step& step_;
  const bool sfu_at_once_;
  std::vector<Action>& actions_;
};

}  // namespace

bool touches_r4(const Step& step) {
  const Instruction& i = step.instruction;
  switch (step.signal) {
    case Signal::kLoadTmu0:
    case Signal::kLoadTmu1:
    case Signal::kColorLoad:
    case Signal::kColorLoadEnd:
      return true;
    default:
      break;
  }
  for (const Half* half : {&step.add, &step.mul})
    if (half->to.target == Target::kPort && is_sfu(half->to.port)) return true;
  if (i.form() != Form::kAlu) return false;
  return i.add_a == kMuxR4 || i.add_b == kMuxR4 || i.mul_a == kMuxR4 || i.mul_b == kMuxR4;
}

bool add_actions(const Step& step, bool sfu_at_once, std::vector<Action>& actions) {
  return Maker(step, sfu_at_once, actions).make();
}

}  // namespace v3d::qpu::vc4
