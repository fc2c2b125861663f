#include "tools/cli/run/run_report.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "daemon/run_report.h"
#include "ioctl/link/wire.h"
#include "tools/cli/files/files.h"

namespace v3d::tools {
namespace {

/// Errors that the summary shows; `v3demu status` and the log have more.
constexpr size_t kShown = 5;

std::string contents(int fd) {
  std::string text;
  char chunk[1 << 14];
  ssize_t got;
  while ((got = pread(fd, chunk, sizeof chunk, static_cast<off_t>(text.size()))) > 0)
    text.append(chunk, static_cast<size_t>(got));
  return text;
}

size_t kind_of(const std::string& word) {
  const auto row = std::find_if(std::begin(daemon::kGpuErrorKinds), std::end(daemon::kGpuErrorKinds),
                                [&](const auto& known) { return word == known.word; });
  return static_cast<size_t>(row - std::begin(daemon::kGpuErrorKinds));
}

/// All that may be sent to a wrapper in place of its program. Those that stop it stop both.
sigset_t signals_for_programs() {
  sigset_t set;
  sigfillset(&set);
  for (const int own :
       {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU})
    sigdelset(&set, own);
  return set;
}

/// Ends as the program did, for whoever looks at that; its core is enough.
int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
  return 128 + number;
}

/// Until the program has ended: passes signals on, and stops and goes on with it. @return  as waitpid() has
/// it
int wait_for_program(pid_t program, const sigset_t& signals) {
  int status = 0;
  while (true) {
    const pid_t changed = waitpid(program, &status, WNOHANG | WUNTRACED);
    if (changed == program && WIFSTOPPED(status)) {
      raise(SIGSTOP);  // until who controls the job has it go on
      kill(program, SIGCONT);
      continue;
    }
    if (changed != 0) return status;
    siginfo_t info;
    const int number = sigwaitinfo(&signals, &info);
    // What a terminal sends has reached the program, too.
    if (number > 0 && number != SIGCHLD && info.si_code <= 0) kill(program, number);
  }
}

/// In the child.
[[noreturn]] void become_program(const RunOptions& options, pid_t parent, const sigset_t& mask,
                                 const struct sigaction& on_child) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // where this process cannot pass it on
  if (getppid() != parent) _exit(1);
  sigaction(SIGCHLD, &on_child, nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int status = run_program(options);
  fflush(nullptr);
  _exit(status);
}

/// The process that sums up: says where it listens, and waits for the end of the program.
[[noreturn]] void watch_program(const std::string& command, pid_t program, int output) {
  setsid();                   // what a terminal sends to its programs is not for it
  if (fork() != 0) _exit(0);  // and a program that waits for its children finds none that it does not know
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const RunReport report;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, program, 0));
  if (!report.works() || process < 0) _exit(1);
  const std::string names = report.names();
  if (write(output, names.data(), names.size()) < 0) _exit(1);
  // Somebody may wait for the other ends of what this process would hold open.
  if (const int nothing = open("/dev/null", O_RDWR); nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
  }
  const auto [low, high] = std::minmax({report.descriptor(), process});  // values, not references
  if (low > 3) close_range(3, static_cast<unsigned>(low) - 1, 0);
  if (high > low + 1) close_range(static_cast<unsigned>(low) + 1, static_cast<unsigned>(high) - 1, 0);
  close_range(static_cast<unsigned>(high) + 1, ~0U, 0);
  if (chdir("/") != 0) _exit(1);
  pollfd end = {process, POLLIN, 0};
  while (poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  report.tell(command);
  _exit(0);
}

}  // namespace

RunReport::RunReport() : file_(memfd_create("v3demu-run", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const auto head = daemon::kRunReportHead;
  if (file_ && write(file_.get(), head.data(), head.size()) != static_cast<ssize_t>(head.size()))
    file_.reset();
  if (file_) fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK);
}

std::string RunReport::names() const {
  std::string names = daemon::run_report_name(getpid(), file_.get());
  const std::string outer = variable(wire::kRunVariable);
  if (!outer.empty() && names.size() + 1 + outer.size() <= wire::kMaxRunNames) names += "," + outer;
  return names;
}

void RunReport::set_variable() const {
  if (works()) setenv(wire::kRunVariable, names().c_str(), 1);
}

uint64_t RunReport::Errors::total() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

RunReport::Errors RunReport::read() const {
  Errors errors;
  if (!works()) return errors;
  const std::string text = contents(file_.get());
  errors.all = static_cast<int64_t>(text.size()) < daemon::kMostRunBytes;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the head
  while (std::getline(lines, line)) {
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, blank);
    const size_t kind = kind_of(word);
    if (kind >= errors.counts.size()) continue;
    ++errors.counts[kind];
    if (errors.first.size() < kShown && blank < line.size())
      errors.first.push_back(absl::StrCat(word, ": ", line.substr(blank + 1)));
  }
  return errors;
}

bool RunReport::tell(const std::string& command) const {
  const Errors errors = read();
  const uint64_t total = errors.total();
  if (total == 0) return false;
  std::string text = absl::StrCat("v3demu ", command, ": GPU errors: ");
  const char* between = "";
  for (size_t kind = 0; kind < errors.counts.size(); ++kind) {
    const uint64_t count = errors.counts[kind];
    if (count == 0) continue;
    const daemon::GpuErrorKindRow& row = daemon::kGpuErrorKinds[kind];
    absl::StrAppend(&text, between, count, " ", count == 1 ? row.one : row.many);
    between = ", ";
  }
  text += errors.all ? "\n" : ", and perhaps more\n";
  for (const std::string& error : errors.first) absl::StrAppend(&text, "  ", error, "\n");
  if (total > errors.first.size())
    absl::StrAppend(&text, "  ", total - errors.first.size(),
                    " more; \"v3demu status\" shows the last ones, as long as the daemon runs\n");
  fputs(text.c_str(), stderr);
  return true;
}

int run_for_status(const RunOptions& options) {
  const RunReport report;
  if (!report.works()) {
    fprintf(stderr, "v3demu %s: no file for GPU errors: %s\n", options.name.c_str(), strerror(errno));
    return 1;
  }
  report.set_variable();
  const sigset_t signals = signals_for_programs();
  sigset_t mask;
  struct sigaction on_child = {}, by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &on_child);
  sigprocmask(SIG_BLOCK, &signals, &mask);
  const pid_t parent = getpid();
  const pid_t program = fork();
  if (program == 0) become_program(options, parent, mask, on_child);
  if (program < 0) {
    fprintf(stderr, "v3demu %s: %s\n", options.name.c_str(), strerror(errno));
    return 1;
  }
  const int status = wait_for_program(program, signals);
  const bool errors = report.tell(options.name);
  const int ended = end_as(status);
  return ended == 0 && errors ? kGpuErrorStatus : ended;
}

void sum_up_behind(const RunOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const ioctl::UniqueFd input(ends[0]);
  ioctl::UniqueFd output(ends[1]);
  const pid_t program = getpid();
  const pid_t child = fork();
  if (child == 0) watch_program(options.name, program, output.get());
  output.reset();
  char names[wire::kMaxRunNames + 1] = {};
  ssize_t got = 0;
  while (child > 0 && (got = ::read(input.get(), names, sizeof names - 1)) < 0 && errno == EINTR) {
  }
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (got > 0) setenv(wire::kRunVariable, names, 1);
}

}  // namespace v3d::tools
