#include "tools/box/injection.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "tools/box/box.h"

namespace v3d::box {

std::mutex g_tracing;
std::atomic<pid_t> g_program{0};

namespace {

#if defined(__x86_64__)

using Registers = user_regs_struct;

constexpr int kSystemCall = SIGTRAP | 0x80;  // with PTRACE_O_TRACESYSGOOD
constexpr int kMostStops = 64;
constexpr unsigned kInstruction = 2;  // bytes of `syscall`

/// A thread that has stood still since its system call was answered, before it sees the answer.
class Tracee {
 public:
  explicit Tracee(pid_t thread) : thread_(thread) {}
  ~Tracee() {
    if (attached_) ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;

  bool attach() {
    attached_ = ptrace(PTRACE_SEIZE, thread_, nullptr, PTRACE_O_TRACESYSGOOD) == 0 &&
                ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0;
    return attached_;
  }
  /// Until it stands, to be let go.
  bool wait_for_stop() {
    siginfo_t happened{};
    int error;
    do
      error = waitid(P_PID, static_cast<id_t>(thread_), &happened,
                     WEXITED | WSTOPPED | __WALL | __WNOTHREAD | WNOWAIT);
    while (error != 0 && errno == EINTR);
    const bool stopped = error == 0 && (happened.si_code == CLD_TRAPPED || happened.si_code == CLD_STOPPED);
    // Of a thread that has ended the tracer hears first, and only then the parent.
    if (stopped || thread_ != g_program) waitpid(thread_, &status_, __WALL | __WNOTHREAD);
    attached_ = stopped;
    return stopped;
  }
  /// The same, with no signal to be delivered; and what its registers are then.
  bool hold() {
    uint64_t all = ~uint64_t{0};
    return wait_for_stop() && ptrace(PTRACE_GETSIGMASK, thread_, sizeof mask_, &mask_) == 0 &&
           ptrace(PTRACE_SETSIGMASK, thread_, sizeof all, &all) == 0 &&
           ptrace(PTRACE_GETREGS, thread_, nullptr, &saved_) == 0;
  }
  const Registers& saved() const { return saved_; }

  /// Makes a system call whose arguments are in the registers. Nothing when the thread is no more.
  std::optional<uint64_t> call(unsigned long number, Registers registers) {
    registers.rip = saved_.rip - kInstruction;
    registers.rax = number;
    registers.orig_rax = ~0ull;  // no call to be restarted
    if (ptrace(PTRACE_SETREGS, thread_, nullptr, &registers) != 0) return {};
    if (!go_on() || !go_on()) return {};  // to its entry, and to its exit
    if (ptrace(PTRACE_GETREGS, thread_, nullptr, &registers) != 0) return {};
    return registers.rax;
  }

  /// It goes on as if the call had given that.
  void release(uint64_t result) {
    saved_.rax = result;
    saved_.orig_rax = ~0ull;
    ptrace(PTRACE_SETREGS, thread_, nullptr, &saved_);
    ptrace(PTRACE_SETSIGMASK, thread_, sizeof mask_, &mask_);
  }

 private:
  bool go_on() {
    for (int stop = 0; stop < kMostStops; ++stop) {
      // SIGSTOP alone cannot be held back.
      const int signal = WSTOPSIG(status_) == SIGSTOP && status_ >> 16 == 0 ? SIGSTOP : 0;
      if (ptrace(PTRACE_SYSCALL, thread_, nullptr, signal) != 0 || !wait_for_stop()) return false;
      if (WSTOPSIG(status_) == kSystemCall) return true;
    }
    return false;
  }

  pid_t thread_;
  bool attached_ = false;
  int status_ = 0;
  uint64_t mask_ = 0;
  Registers saved_{};
};

class Calls : public Inside {
 public:
  explicit Calls(Tracee& tracee) : tracee_(tracee) {}
  uint64_t call(unsigned long number, const std::array<uint64_t, 6>& a) override {
    if (gone_) return static_cast<uint64_t>(-ESRCH);
    Registers registers = tracee_.saved();
    registers.rdi = a[0];
    registers.rsi = a[1];
    registers.rdx = a[2];
    registers.r10 = a[3];
    registers.r8 = a[4];
    registers.r9 = a[5];
    const auto result = tracee_.call(number, registers);
    gone_ = !result;
    return result.value_or(static_cast<uint64_t>(-ESRCH));
  }
  bool gone() const { return gone_; }

 private:
  Tracee& tracee_;
  bool gone_ = false;
};

}  // namespace

void answer_inside(const Caller& caller, const std::function<uint64_t(Inside&)>& work) {
  const std::lock_guard lock(g_tracing);
  Tracee tracee(caller.thread());
  if (!tracee.attach()) {
    const int error = errno;
    static std::once_flag told;
    if (error == EPERM) {
      std::call_once(
          told, [] { say("BOs cannot be mapped in a program that somebody traces (a debugger, strace)"); });
    }
    caller.answer(-error);
    return;
  }
  // Whose thread has that number now: the caller's cannot be another's any more, even if it ends.
  if (!caller.is_waiting()) {
    tracee.wait_for_stop();
    return;
  }
  caller.answer(-EINTR);  // which it will not see
  if (!tracee.hold()) return;
  Calls calls(tracee);
  const uint64_t result = work(calls);
  if (!calls.gone()) tracee.release(result);
}

#else

}  // namespace

void answer_inside(const Caller& caller, const std::function<uint64_t(Inside&)>&) {
  shim::complain(
      "not implemented: mappings of /dev/mem under --seccomp, in programs that are not for x86-64");
  caller.answer(-ENODEV);
}

#endif

uint64_t own_number(int number) {
  return uint64_t{shim::raw::kOwnCall} << 32 | static_cast<uint32_t>(number);
}

void answer_with_mapping(const Caller& caller, int memory, off_t place) {
  const int number = caller.give(memory, true);
  if (number < 0) {
    caller.answer(number);
    return;
  }
  const __u64* args = caller.data().args;
  answer_inside(caller, [&](Inside& inside) {
    const uint64_t at = inside.call(
        SYS_mmap, {args[0], args[1], args[2], args[3], own_number(number), static_cast<uint64_t>(place)});
    inside.call(SYS_close, {static_cast<uint64_t>(number), 0, 0, 0, 0, 0});
    return at;
  });
}

}  // namespace v3d::box
