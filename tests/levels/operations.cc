#include <memory>
#include <set>

#include "gpu/qpu/run/alu.h"
#include "tests/levels/results.h"
#include "tests/qpu/stage_room.h"

namespace v3d::levels {
namespace {

using namespace qpu;

constexpr int kRounds = 160;

/// One operation with all conversions of its operands, and its flags.
class OperationResults {
 public:
  explicit OperationResults(Op op) : op_(op), words_(static_cast<uint32_t>(op)) {}

  uint64_t all() {
    for (int a = 0; a < kNumUnpacks; ++a)
      for (int b = 0; b < kNumUnpacks; ++b) converted(static_cast<Unpack>(a), static_cast<Unpack>(b));
    return hash_.value();
  }

 private:
  void converted(Unpack ua, Unpack ub) {
    const AluFn alu = find_alu(op_, ua, ub);
    if (!seen_.insert(alu).second) return;
    room_.give_to(*thread_, false);
    for (int round = 0; round < kRounds; ++round) {
      Thread& t = *thread_;
      t.msf = words_.words();
      t.rtop = words_.words() & 0xffu;
      t.flag_a = static_cast<LaneMask>(words_.any());
      const bool halves = round % 4 == 3;
      const Lanes a = halves ? words_.halves_of_lanes() : words_.words();
      const Lanes b = halves ? words_.halves_of_lanes() : words_.words();
      const Lanes result = alu(t, a, b, static_cast<LaneMask>(words_.any() | 1));
      hash_.add(result);
      hash_.add(t.rtop);
      for (FlagWrite write : {FlagWrite::kPushz, FlagWrite::kPushn, FlagWrite::kPushc})
        hash_.add(uint32_t{find_flag(op_, write, ua, ub)(a, b, result)});
      for (Pack pack : {Pack::kL, Pack::kH}) hash_.add(packed(pack, result, b));
    }
  }

  Op op_;
  Words words_;
  Hash hash_;
  std::set<AluFn> seen_;
  StageRoom room_;
  std::unique_ptr<Thread> thread_ = [] {
    auto thread = std::make_unique<Thread>();
    thread->reset();
    return thread;
  }();
};

}  // namespace

void add_operations(Results& results) {
  for (int n = 0; n < kNumOps; ++n) {
    const auto op = static_cast<Op>(n);
    results.emplace_back(std::string("operation.") + info(op).mnemonic, OperationResults(op).all());
  }
}

}  // namespace v3d::levels
