/// Input: a capture file, after its header when the first byte is not 'V'.
#include "daemon/capture.h"

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/cle/surfaces.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

void write_all(int fd, Bytes bytes) {
  if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
}

/// What replay and decode make of it before it runs.
void describe(const device::SurfaceJob& frame) {
  cle::TileProgram program;
  std::string error;
  if (!cle::surface_program(frame, &program, &error) && error.empty()) std::abort();
  if (cle::describe_surfaces(frame).empty() || cle::surface_tiles(frame).size() > 65536) std::abort();
}

/// What replay --compare reads after a job.
absl::Status look_after(daemon::CaptureReader& reader) {
  const auto after = reader.take_after();
  if (!after.ok() || !after->has_value()) return after.status();
  for (const auto& range : (*after)->ranges)
    for (uint64_t at = 0; at < range.size && at < 16 * mmu::kPageSize; at += mmu::kPageSize)
      if (reader.page_after(**after, static_cast<GpuAddr>(range.address + at)).empty()) std::abort();
  return absl::OkStatus();
}

}  // namespace

void capture(Bytes input) {
  const int fd = memfd_create("capture", MFD_CLOEXEC);
  if (fd < 0) std::abort();
  if (input.empty() || input[0] != 'V') {
    uint8_t header[32] = {};
    std::memcpy(header, daemon::kCaptureMagic, 8);
    std::strncpy(reinterpret_cast<char*>(header + 8), "rpi5", 24);
    write_all(fd, header);
  }
  write_all(fd, input);
  auto reader = daemon::CaptureReader::open("/proc/self/fd/" + std::to_string(fd));
  absl::Status end = reader.status();
  while (end.ok()) {
    const auto job = (*reader)->next();
    end = job.status();
    if (job.ok()) (*reader)->context(job->context).space().take_faults();
    if (job.ok() && job->surfaces) describe(*job->surfaces);
    if (job.ok()) end = look_after(**reader);
  }
  if (end.message().empty()) std::abort();
  close(fd);
}

}  // namespace v3d::fuzz
