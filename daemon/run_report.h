/// A run report lists the GPU errors of what a `v3demu run` started: a file of which its programs tell the
/// daemon by $V3DEMU_RUN. The file outlives daemons, and there is one also where a run has several of them.
///
/// It is a memfd, sealed against shrinking, and begins with kRunReportHead; each error is a line: a word of
/// gpu_errors.h and, while the file is small, a blank and a text. Where it has no room left, errors are
/// dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace v3d::daemon {

inline constexpr std::string_view kRunReportHead = "GPU errors of a v3demu run\n";
/// Bytes of the file up to which errors have their text, and in all.
inline constexpr int64_t kMostRunDetails = 32 << 10, kMostRunBytes = 256 << 10;

/// What $V3DEMU_RUN is for a descriptor of a process.
std::string run_report_name(int32_t pid, int fd);

/// Appends a line to each of such files. The names come from a client, so nothing else of the host is
/// touched, and nothing blocks.
/// @param names  $V3DEMU_RUN: of a run, and after commas of those in which it runs
void add_to_run_reports(std::string_view names, std::string_view word, std::string_view text);

}  // namespace v3d::daemon
