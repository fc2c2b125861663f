#include "daemon/surroundings.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace v3d::daemon {
namespace {

constexpr rlim_t kStackBytes = 8 << 20;

void lift_limits() {
  // RLIMIT_NOFILE: limits.h. What bounds no daemon's work is left alone.
  for (const __rlimit_resource resource :
       {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_RSS, RLIMIT_NPROC, RLIMIT_MEMLOCK}) {
    rlimit limit;
    const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(resource, &all) == 0 || getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
  rlimit stack;
  if (getrlimit(RLIMIT_STACK, &stack) != 0) return;
  stack.rlim_cur = std::min(stack.rlim_max, kStackBytes);
  setrlimit(RLIMIT_STACK, &stack);
}

void take_the_usual_turn() {
  const sched_param none = {};
  if (sched_getscheduler(0) != SCHED_OTHER) sched_setscheduler(0, SCHED_OTHER, &none);
  if (getpriority(PRIO_PROCESS, 0) != 0) setpriority(PRIO_PROCESS, 0, 0);
  constexpr int kProcess = 1, kNoPriority = 0;  // ioprio_set, for which there is no header
  syscall(SYS_ioprio_set, kProcess, 0, kNoPriority);
  constexpr unsigned long kUsualSlackNs = 50'000;
  prctl(PR_SET_TIMERSLACK, kUsualSlackNs);
}

void use_the_whole_machine() {
  // The kernel leaves out those that its cpuset does not have.
  cpu_set_t all;
  std::fill_n(reinterpret_cast<unsigned char*>(&all), sizeof all, static_cast<unsigned char>(0xff));
  sched_setaffinity(0, sizeof all, &all);
  constexpr int kDefaultPolicy = 0;  // MPOL_DEFAULT, of which libnuma has the header
  syscall(SYS_set_mempolicy, kDefaultPolicy, nullptr, 0);
  prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

void be_as_mortal_as_others() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "0", 1);
  close(file);
}

}  // namespace

void shed_surroundings() {
  lift_limits();
  take_the_usual_turn();
  use_the_whole_machine();
  be_as_mortal_as_others();
  umask(077);
}

void fix_thread_stacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

}  // namespace v3d::daemon
