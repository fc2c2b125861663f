#include "tools/cli/captures/host_profile.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/capture.h"
#include "daemon/gpus.h"
#include "daemon/host_profile.h"
#include "daemon/perf_map.h"
#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/thread_pool.h"
#include "gpu/device/device.h"
#include "gpu/qpu/jit/jit.h"
#include "tools/cli/captures/captures.h"
#include "tools/cli/captures/clif.h"
#include "tools/cli/captures/compiler.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run/own_daemon.h"
#include "tools/cli/run/run_report.h"

namespace v3d::tools {
namespace {

int fail(const std::string& what) {
  fprintf(stderr, "v3demu profile: %s\n", what.c_str());
  return 1;
}

std::string left_out_text(const HostProfileOptions& options) {
  return options.leave_out.empty() ? "" : absl::StrCat("left out: ", options.leave_out, "\n");
}

/// Runs all jobs. @return  for exit(): 0, or 1 with a message
int run_jobs(const std::string& file, daemon::CaptureReader& reader, uint32_t repeat) {
  ThreadPool pool(static_cast<int>(std::thread::hardware_concurrency()) - 1);
  device::Device device(reader.profile(), pool);
  CapturedJobs jobs(device);
  while (true) {
    const auto job = reader.next();
    if (absl::IsNotFound(job.status())) return 0;
    if (!job.ok()) return fail(absl::StrCat(file, ": ", job.status().message()));
    reader.restore_found();
    const device::JobResult result = jobs.run(*job, reader.context(job->context), repeat);
    if (!result.message.empty()) fail(result.message);
  }
}

}  // namespace

int host_profile_of_program(const RunOptions& run, const HostProfileOptions& options) {
  const std::string socket = own_socket(run.name, "profile-");
  if (socket.empty()) return 1;
  const TemporaryFolder folder("v3demu-profile");
  if (folder.path.empty()) return fail(absl::StrCat("no temporary folder: ", strerror(errno)));
  const std::string file = folder.path / "host.txt";
  setenv("V3DEMU_HOST_PROFILE", file.c_str(), 1);
  if (!options.leave_out.empty()) setenv("V3DEMU_LEAVE_OUT", options.leave_out.c_str(), 1);
  if (options.perf_map) setenv("V3DEMU_PERF_MAP", "1", 1);
  const RunReport report;
  report.set_variable();
  const OwnDaemonEnd end = run_with_own_daemon(run, socket);
  report.tell(run.name);
  const std::string text = read_file(file).value_or("");
  if (text.empty()) {
    fail("the program did not use the GPU");
    return end.program ? end.program : 1;
  }
  printf("%s%s", left_out_text(options).c_str(), text.c_str());
  return end.program ? end.program : !end.ended;
}

int host_profile_of_capture(const std::string& file, const HostProfileOptions& options) {
  const auto environment = compiler_of_environment();
  if (!environment.ok()) return fail(std::string(environment.status().message()));
  const std::unique_ptr<qpu::jit::JitCompiler>& compiler = *environment;
  std::unique_ptr<daemon::PerfMap> map;
  if (compiler && options.perf_map) map = daemon::PerfMap::create();
  if (map)
    compiler->set_listener([&map](const qpu::jit::CodeMemory& code, const std::string& name) {
      map->add(code.begin(), code.size(), name);
    });
  auto reader = open_capture(file, compiler.get());
  if (!reader.ok()) return fail(std::string(reader.status().message()));
  g_left_out = parse_left_out(options.leave_out).value_or(0);
  host_time::start();
  const int status = run_jobs(file, **reader, options.repeat);
  warn_of_old_format("profile", file, **reader);
  printf("%s%s", left_out_text(options).c_str(),
         daemon::host_profile_text(host_time::totals(), daemon::engine_text(compiler.get())).c_str());
  if (map) printf("perf map: /tmp/perf-%d.map\n", getpid());
  return status;
}

}  // namespace v3d::tools
