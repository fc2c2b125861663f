/// A ProgramRoom bounds what the programs of an address space take of the host, and has its client pay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/base/memory_payer.h"

namespace v3d::qpu {

/// It is counted in pieces: a chunk of decoded code is one, and host code is as many as it has bytes for.
/// Host code has room of its own: a program that can be interpreted can be where some of it is compiled.
/// Thread safe.
class ProgramRoom {
 public:
  static constexpr uint64_t kPieceBytes = 16 << 10;
  static constexpr uint64_t pieces_of(uint64_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

  /// @param most  pieces of decoded code; half as many are for host code
  explicit ProgramRoom(size_t most) : most_(most) {}

  /// Before there are any programs. Without one nobody pays.
  void set_payer(std::shared_ptr<MemoryPayer> payer) { payer_ = std::move(payer); }

  /// False, and nothing has changed: so much is not to be had.
  [[nodiscard]] bool take(size_t pieces) { return take(&decoded_, pieces, most_); }
  void give_back(size_t pieces) { give_back(&decoded_, pieces); }
  /// The same for host code.
  [[nodiscard]] bool take_for_code(size_t pieces) { return take(&code_, pieces, most_ / 2); }
  void give_back_of_code(size_t pieces) { give_back(&code_, pieces); }
  /// Of both.
  size_t pieces() const { return decoded_ + code_; }

 private:
  bool take(std::atomic<size_t>* of, size_t pieces, size_t most) {
    if (of->fetch_add(pieces) + pieces <= most && (!payer_ || payer_->take_memory(pieces * kPieceBytes)))
      return true;
    *of -= pieces;
    return false;
  }
  void give_back(std::atomic<size_t>* of, size_t pieces) {
    *of -= pieces;
    if (payer_ && pieces != 0) payer_->return_memory(pieces * kPieceBytes);
  }

  const size_t most_;
  std::shared_ptr<MemoryPayer> payer_;
  std::atomic<size_t> decoded_{0}, code_{0};
};

}  // namespace v3d::qpu
