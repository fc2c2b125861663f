/// A client's memory and descriptors as far as an ioctl request brought them (wire.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/message.h"
#include "ioctl/call.h"

namespace v3d::daemon {

/// copy_from_user and copy_to_user over the segments of a request.
class SegmentMemory : public ioctl::UserMemory {
 public:
  /// @param reader  stands at the first segment. False when the payload does not hold them.
  bool parse(PayloadReader& reader, uint32_t num_segments);

  bool read(uint64_t address, void* to, uint64_t bytes) override;
  bool write(uint64_t address, const void* from, uint64_t bytes) override;

  /// Everything written so far, as the reply carries it: {Segment, bytes} each.
  const std::vector<uint8_t>& writes() const { return writes_; }
  uint32_t num_writes() const { return num_writes_; }

 private:
  struct Piece {
    uint64_t address, size;
    uint32_t flags;
    const uint8_t* bytes;  // of kIn
  };
  const Piece* find(uint64_t address, uint32_t flag) const;

  std::vector<Piece> pieces_;  // by address
  uint64_t longest_ = 0;       // no piece is longer
  std::vector<uint8_t> writes_;
  uint32_t num_writes_ = 0;
};

class RequestFds : public ioctl::UserFds {
 public:
  /// @param numbers  of the client, as many as fds
  RequestFds(std::vector<int32_t> numbers, std::span<const ioctl::UniqueFd> fds)
      : numbers_(std::move(numbers)), fds_(fds) {}

  int find(int number) override;
  void give_in_argument(uint32_t offset, ioctl::UniqueFd fd, bool close_on_exec) override;

  std::vector<wire::FdPatch> patches;
  std::vector<ioctl::UniqueFd> given;

 private:
  const std::vector<int32_t> numbers_;
  const std::span<const ioctl::UniqueFd> fds_;
};

}  // namespace v3d::daemon
