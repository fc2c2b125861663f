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
/// Thread safe.
class ProgramRoom {
 public:
  static constexpr uint64_t kPieceBytes = 16 << 10;
  static constexpr uint64_t pieces_of(uint64_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

  /// @param most  pieces
  explicit ProgramRoom(size_t most) : most_(most) {}

  /// Before there are any programs. Without one nobody pays.
  void set_payer(std::shared_ptr<MemoryPayer> payer) { payer_ = std::move(payer); }

  /// False, and nothing has changed: so much is not to be had.
  [[nodiscard]] bool take(size_t pieces) {
    if (pieces_.fetch_add(pieces) + pieces <= most_ && (!payer_ || payer_->take_memory(pieces * kPieceBytes)))
      return true;
    pieces_ -= pieces;
    return false;
  }
  void give_back(size_t pieces) {
    pieces_ -= pieces;
    if (payer_ && pieces != 0) payer_->return_memory(pieces * kPieceBytes);
  }
  size_t pieces() const { return pieces_; }

 private:
  const size_t most_;
  std::shared_ptr<MemoryPayer> payer_;
  std::atomic<size_t> pieces_{0};
};

}  // namespace v3d::qpu
