/// This header has a queue of user programs that a test fills.
#pragma once

#include <deque>
#include <vector>

#include "gpu/csd/user_programs.h"

namespace v3d::csd {

class TestQueue : public UserQueue {
 public:
  bool take(UserProgram* program) override {
    if (waiting.empty()) return false;
    *program = waiting.front();
    waiting.pop_front();
    return true;
  }
  void executed(uint64_t instructions) override { told += instructions; }
  void end(const UserProgram& program, int qpu, bool interrupts) override {
    ended.push_back(program.code);
    told_at_end.push_back(told);
    qpus.push_back(qpu);
    interrupted |= interrupts;
  }
  uint32_t reserved_qpus() const override { return reserved; }
  std::vector<UserProgram> queued() const override { return {waiting.begin(), waiting.end()}; }

  std::deque<UserProgram> waiting;
  std::vector<GpuAddr> ended;
  std::vector<int> qpus;
  uint64_t told = 0;
  std::vector<uint64_t> told_at_end;
  bool interrupted = false;
  uint32_t reserved = 0;
};

}  // namespace v3d::csd
