/// A request brings a client's memory and descriptors as far as its ioctl needs them (wire.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/message.h"
#include "ioctl/core/call.h"

namespace v3d::daemon {

/// Most segments of a request, as the shim sends them. More are no request.
inline constexpr uint32_t kMaxSegments = 1 << 14;
/// Most bytes that an ioctl writes to the caller's memory; more are EFAULT. The longest answer lists the
/// fences of a merged sync_file, 80 bytes each.
inline constexpr uint64_t kMaxWrites = 1 << 20;

/// copy_from_user and copy_to_user over the segments of a request. Segments that overlap are copies of the
/// same memory; of such only one counts for an address, which one is not said. A look-up takes the logarithm
/// of their number.
class SegmentMemory : public ioctl::UserMemory {
 public:
  static constexpr size_t kSegmentBytes = 96;  ///< memory that one takes, about

  /// @param reader  stands at the first segment. False when the payload does not hold them, or there are more
  ///                than kMaxSegments.
  bool parse(PayloadReader& reader, uint32_t num_segments);

  bool read(uint64_t address, void* to, uint64_t bytes) override;
  bool write(uint64_t address, const void* from, uint64_t bytes) override;

  /// Everything written so far, as the reply carries it: {Segment, bytes} each.
  const std::vector<uint8_t>& writes() const { return writes_; }
  uint32_t num_writes() const { return num_writes_; }
  /// Disjoint pieces of memory that the segments of a direction make up.
  size_t num_pieces(wire::SegmentFlags direction) const {
    return (direction == wire::kIn ? in_ : out_).size();
  }

 private:
  struct Piece {
    uint64_t address, size;
    const uint8_t* bytes;  // of kIn
  };
  /// In ascending order, disjoint.
  using Pieces = std::vector<Piece>;
  static void make_disjoint(Pieces* pieces);
  static const Piece* find(const Pieces& pieces, uint64_t address);

  Pieces in_, out_;
  std::vector<uint8_t> writes_;
  uint32_t num_writes_ = 0;
};

/// Goes along with the reply to a submit.
struct ReadySyncFile {
  wire::ReadySyncFile what;
  ioctl::UniqueFd fd;
};

class RequestFds : public ioctl::UserFds {
 public:
  /// @param numbers  of the client, as many as fds
  RequestFds(std::vector<int32_t> numbers, std::span<const ioctl::UniqueFd> fds)
      : numbers_(std::move(numbers)), fds_(fds) {}

  int find(int number) override;
  void give_in_argument(uint32_t offset, ioctl::UniqueFd fd, bool close_on_exec) override;

  void give_in_memory(uint64_t address, ioctl::UniqueFd fd, bool close_on_exec) override;
  void replace_mappings(ioctl::MovedMemory moved) override;

  std::vector<wire::FdPatch> patches;
  std::vector<ioctl::UniqueFd> given;
  std::vector<wire::Move> moves;
  std::vector<ioctl::UniqueFd> moved_to;
  std::vector<ReadySyncFile> sync_files;

 private:
  const std::vector<int32_t> numbers_;
  const std::span<const ioctl::UniqueFd> fds_;
};

}  // namespace v3d::daemon
