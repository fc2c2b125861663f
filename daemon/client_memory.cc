#include "daemon/client_memory.h"

#include <algorithm>

namespace v3d::daemon {

bool SegmentMemory::parse(PayloadReader& reader, uint32_t num_segments) {
  if (num_segments > kMaxSegments) return false;
  for (uint32_t i = 0; i < num_segments; ++i) {
    wire::Segment segment;
    if (!reader.read(&segment)) return false;
    std::span<const uint8_t> bytes;
    if ((segment.flags & wire::kIn) && !reader.take(segment.size, &bytes)) return false;
    if (segment.size == 0 || segment.address + segment.size < segment.address) continue;
    if (segment.flags & wire::kIn) in_.push_back({segment.address, segment.size, bytes.data()});
    if (segment.flags & wire::kOut) out_.push_back({segment.address, segment.size, nullptr});
  }
  make_disjoint(&in_);
  make_disjoint(&out_);
  return true;
}

void SegmentMemory::make_disjoint(Pieces* pieces) {
  std::sort(pieces->begin(), pieces->end(),
            [](const Piece& a, const Piece& b) { return a.address < b.address; });
  size_t kept = 0;
  uint64_t end = 0;  // of the kept ones
  for (Piece piece : *pieces) {
    const uint64_t covered = end > piece.address ? end - piece.address : 0;
    if (covered >= piece.size) continue;
    piece.address += covered;
    piece.size -= covered;
    if (piece.bytes) piece.bytes += covered;
    end = piece.address + piece.size;
    (*pieces)[kept++] = piece;
  }
  pieces->resize(kept);
}

const SegmentMemory::Piece* SegmentMemory::find(const Pieces& pieces, uint64_t address) {
  auto it = std::upper_bound(pieces.begin(), pieces.end(), address,
                             [](uint64_t a, const Piece& p) { return a < p.address; });
  if (it == pieces.begin()) return nullptr;
  --it;
  return address - it->address < it->size ? &*it : nullptr;
}

bool SegmentMemory::read(uint64_t address, void* to, uint64_t bytes) {
  auto* out = static_cast<uint8_t*>(to);
  while (bytes > 0) {
    const Piece* piece = find(in_, address);
    if (!piece) return false;
    const uint64_t offset = address - piece->address, count = std::min(bytes, piece->size - offset);
    std::memcpy(out, piece->bytes + offset, count);
    out += count;
    address += count;
    bytes -= count;
  }
  return true;
}

bool SegmentMemory::write(uint64_t address, const void* from, uint64_t bytes) {
  for (uint64_t at = address, left = bytes; left > 0;) {
    const Piece* piece = find(out_, at);
    if (!piece) return false;
    const uint64_t count = std::min(left, piece->size - (at - piece->address));
    at += count;
    left -= count;
  }
  if (bytes == 0) return true;
  if (writes_.size() + bytes > kMaxWrites) return false;
  const wire::Segment segment = {address, static_cast<uint32_t>(bytes), 0};
  writes_.resize(writes_.size() + sizeof segment + bytes);
  uint8_t* end = writes_.data() + writes_.size();
  std::memcpy(end - bytes - sizeof segment, &segment, sizeof segment);
  std::memcpy(end - bytes, from, bytes);
  ++num_writes_;
  return true;
}

int RequestFds::find(int number) {
  for (size_t i = 0; i < numbers_.size(); ++i)
    if (numbers_[i] == number) return fds_[i] ? fds_[i].get() : kForeign;
  return -1;
}

void RequestFds::give_in_argument(uint32_t offset, ioctl::UniqueFd fd, bool close_on_exec) {
  patches.push_back({offset, wire::kInArg, close_on_exec});
  given.push_back(std::move(fd));
}

void RequestFds::give_in_memory(uint64_t address, ioctl::UniqueFd fd, bool close_on_exec) {
  patches.push_back({address, wire::kInMemory, close_on_exec});
  given.push_back(std::move(fd));
}

void RequestFds::replace_mappings(ioctl::MovedMemory moved) {
  moves.push_back({moved.slab.device, moved.slab.inode, moved.offset, moved.size});
  moved_to.push_back(std::move(moved.memfd));
}

}  // namespace v3d::daemon
