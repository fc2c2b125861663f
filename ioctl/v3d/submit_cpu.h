/// The CPU queue has query and indirect-dispatch jobs, which the kernel itself executes (drm-abi.md 2.10, 5).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "ioctl/v3d/submit.h"

namespace v3d::ioctl {

struct IndirectCsdWork {
  drm::SubmitCsd args;
  CsdSubmission jobs;
  std::shared_ptr<Bo> indirect;    ///< holds the uniforms to rewrite
  uint32_t offset;                 ///< bytes, of the three counts in bos[0]
  uint32_t wg_size;                ///< invocations
  uint32_t wg_uniform_offsets[3];  ///< 32-bit words in `indirect`, 0xffffffff for none
};

struct TimestampQuery {
  uint32_t offset;  ///< bytes, in the query pool
  std::shared_ptr<Syncobj> syncobj;
};
struct TimestampWork {
  std::vector<TimestampQuery> queries;
};
struct ResetTimestampWork {
  std::vector<TimestampQuery> queries;
};

/// How query results are laid out in the destination.
struct CopyLayout {
  bool do_64bit, do_partial, availability_bit;
  uint32_t offset, stride;  ///< bytes
};
struct CopyTimestampWork {
  std::vector<TimestampQuery> queries;
  CopyLayout layout;
};

struct PerformanceQuery {
  std::shared_ptr<Syncobj> syncobj;
  std::vector<uint32_t> perfmon_ids;
};
struct ResetPerformanceWork {
  std::vector<PerformanceQuery> queries;
};
struct CopyPerformanceWork {
  std::vector<PerformanceQuery> queries;
  uint32_t nperfmons, ncounters;
  CopyLayout layout;
};

/// What the extension of a SUBMIT_CPU asks for; monostate until one was found.
struct CpuSubmission {
  std::variant<std::monostate, IndirectCsdWork, TimestampWork, ResetTimestampWork, CopyTimestampWork,
               ResetPerformanceWork, CopyPerformanceWork>
      work;
  Charge bytes;  ///< of the queries
};

/// Parses one CPU extension. EINVAL for unknown ids, a second one, or cpu == null.
int get_cpu_extension(Call& call, uint32_t id, uint64_t address, CpuSubmission* cpu);

/// Executes the work on the CPU queue. Accesses outside the BOs, which not every kernel checks, do nothing.
/// @param job  the CPU job; its done fence goes into the syncobjs of timestamp queries
/// @param turn  is asked between queries, of which there may be kMaxUserArray
/// @param file  whose perfmons are meant; may be closed meanwhile
void run_cpu_work(CpuSubmission& cpu, const Job& job, const chip::Profile& profile,
                  const std::weak_ptr<File>& file, JobControl& control);

}  // namespace v3d::ioctl
