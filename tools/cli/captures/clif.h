/// CLIF is the text in which Mesa dumps the jobs of control lists (V3D_DEBUG=clif; src/broadcom/clif): the
/// contents of all buffer objects of a job as it is about to be submitted, packets and shader records field
/// by field.
///
/// Text does not say which chip it is of: that whose packets have these fields. Floats stand there with six
/// digits behind the point.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/capture.h"
#include "gpu/chip/generation.h"
#include "gpu/device/device.h"

namespace v3d::tools {

struct ClifBuffer {
  GpuAddr address = 0;
  uint64_t size = 0;
  /// What is not zero: where, and bytes.
  std::vector<std::pair<uint64_t, std::string>> parts = {};
};

/// A submission.
struct ClifDump {
  std::vector<ClifBuffer> buffers;
  device::ClJob job;  ///< bcl_start == bcl_end: it bins nothing
};

struct Clif {
  chip::Generation generation;
  std::vector<ClifDump> dumps;
};

/// Whether a text has dumps, among what else a program printed.
bool is_clif(std::string_view text);
/// Lines outside of dumps are left out. An error names a line.
absl::StatusOr<Clif> parse_clif(std::string_view text);

/// The path of a capture: that of the file, or where the file is CLIF, of one that is made of it and lasts as
/// long as the process.
absl::StatusOr<std::string> capture_path(const std::string& path);

/// CaptureReader::open() of that.
absl::StatusOr<std::unique_ptr<daemon::CaptureReader>> open_capture(const std::string& path,
                                                                    qpu::Compiler* compiler = nullptr);

}  // namespace v3d::tools
