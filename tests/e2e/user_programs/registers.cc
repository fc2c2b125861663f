/// Runs samples/qpu/fft256.py's program as gpu_fft does without EXECUTE_QPU: by the V3D's registers behind
/// /dev/mem, which this program stores to and polls. Handlers of SIGSEGV stay the program's.
///
///     registers fft256.bin

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

using Complex = std::complex<double>;
/// Performance counters: clocks of QPUs that execute, and of those that wait for a TMU, which the timing
/// model tells.
constexpr uint32_t kExecuting = 16, kStalled = 17;
constexpr int kCount = 256, kTransforms = 4, kQpus = 2;
constexpr uint32_t kBytes = 8 * kCount, kSize = 0x8000 + 2 * kTransforms * kBytes;
constexpr uint32_t kPeripherals = 0x3f000000, kV3dBytes = 0x1000;
constexpr uint32_t kIdent0 = 0x000, kL2Cactl = 0x020, kSlcactl = 0x024, kSrqpc = 0x430, kSrqua = 0x434,
                   kSrqcs = 0x43c, kPctrc = 0x670, kPctre = 0x674, kPctr0 = 0x680, kPctrs0 = 0x684,
                   kDbqite = 0xe2c, kDbqitc = 0xe30;

[[noreturn]] void fail(const char* what) {
  std::printf("%s\n", what);
  std::exit(1);
}
void check(bool good, const char* what) {
  if (!good) fail(what);
}

uint32_t ask(uint32_t tag, std::vector<uint32_t> words) {
  static const int fd = open("/dev/vcio", O_RDWR);
  const auto bytes = static_cast<uint32_t>(words.size() * 4);
  std::vector<uint32_t> list = {24 + bytes, 0, tag, bytes, bytes};
  list.insert(list.end(), words.begin(), words.end());
  list.push_back(0);
  check(ioctl(fd, _IOWR(100, 0, char*), list.data()) == 0, "the mailbox refuses");
  return list[5];
}

void* map(uint32_t physical, uint32_t bytes) {
  const int fd = open("/dev/mem", O_RDWR | O_SYNC);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, physical);
  close(fd);
  return at == MAP_FAILED ? nullptr : at;
}

volatile uint32_t* v3d;
uint32_t get(uint32_t offset) { return v3d[offset / 4]; }
void set(uint32_t offset, uint32_t value) { v3d[offset / 4] = value; }

sigjmp_buf back;
volatile int faults = 0;
void* volatile fault_at;
void on_fault(int, siginfo_t* info, void*) {
  faults = faults + 1;
  fault_at = info->si_addr;
  siglongjmp(back, 1);
}

/// A fault of the program's own reaches its handler, also when it was set behind the mapping.
void fault_on_purpose() {
  static volatile uint32_t* const nowhere =
      static_cast<volatile uint32_t*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const int before = faults;
  if (!sigsetjmp(back, 1)) *nowhere = 1;
  check(faults == before + 1 && fault_at == nowhere, "a fault did not reach the program's handler");
}

void test_handlers() {
  struct sigaction mine = {}, old = {};
  mine.sa_sigaction = on_fault;
  mine.sa_flags = SA_SIGINFO;
  check(sigaction(SIGSEGV, &mine, &old) == 0 && old.sa_handler == SIG_DFL,
        "sigaction shows the library's handler");
  fault_on_purpose();
  fault_on_purpose();
  check(sigaction(SIGSEGV, nullptr, &old) == 0 && old.sa_sigaction == on_fault,
        "sigaction shows another handler");
  check(signal(SIGSEGV, SIG_DFL) != SIG_DFL, "signal forgot the handler");
}

/// SA_SIGINFO makes no function of SIG_IGN: a signal that a process sends is ignored.
void test_ignoring() {
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ignore.sa_flags = SA_SIGINFO;
    _exit(sigaction(SIGSEGV, &ignore, nullptr) == 0 && raise(SIGSEGV) == 0 ? 0 : 1);
  }
  int status = 0;
  check(child > 0 && waitpid(child, &status, 0) == child, "no child that ignores");
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "an ignored signal ends a child");
}

void test_registers() {
  check(get(kIdent0) == 0x02443356, "V3D_IDENT0");
  set(kIdent0, 5);
  check(get(kIdent0) == 0x02443356, "V3D_IDENT0 was written");
  set(kPctre, get(kPctre) | 0x80000001u);
  check(get(kPctre) == 0x80000001u, "V3D_PCTRE");
  set(kPctrs0, kExecuting);
  set(kPctrc, 1);
  __atomic_store_n(&v3d[kDbqite / 4], 3u, __ATOMIC_SEQ_CST);
  check(get(kDbqite) == 3, "an atomic store");
}

/// A child has the registers as well. What it unmaps is gone for itself alone.
void test_fork() {
  const pid_t child = fork();
  if (child == 0) {
    test_registers();
    munmap(const_cast<uint32_t*>(v3d), kV3dBytes);
    set(kDbqite, 1);
    _exit(0);
  }
  int status = 0;
  check(child > 0 && waitpid(child, &status, 0) == child, "no child");
  check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a child reaches registers that it has unmapped");
  test_registers();
}

void fft(std::vector<Complex>* x) {
  const size_t n = x->size();
  if (n == 1) return;
  std::vector<Complex> half[2];
  for (size_t i = 0; i < n; ++i) half[i % 2].push_back((*x)[i]);
  fft(&half[0]);
  fft(&half[1]);
  for (size_t k = 0; k < n / 2; ++k) {
    const Complex turned =
        std::polar(1.0, -2 * M_PI * static_cast<double>(k) / static_cast<double>(n)) * half[1][k];
    (*x)[k] = half[0][k] + turned;
    (*x)[k + n / 2] = half[0][k] - turned;
  }
}

void wait_for(uint32_t programs) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(60);
  while ((get(kSrqcs) >> 16 & 0xff) != programs) check(Clock::now() < end, "the programs do not end");
}

/// What the model tells comes when the job has ended that ran the programs.
void wait_for_stalls() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (get(kPctr0 + 8) == 0) check(Clock::now() < end, "no stalls were counted");
}

}  // namespace

/// registers fft256.bin [timed]
int main(int count, char** arguments) {
  std::ifstream file(arguments[1], std::ios::binary);
  const std::vector<char> code((std::istreambuf_iterator<char>(file)), {});
  check(!code.empty() && code.size() <= 0x4000, "no program");

  v3d = static_cast<volatile uint32_t*>(map(kPeripherals + 0xc00000, kV3dBytes));
  check(v3d, "no registers");
  check(get(kIdent0) == 0xdeadbeef, "a V3D without power has registers");
  check(ask(0x30012, {1}) == 0, "no QPUs");
  const uint32_t handle = ask(0x3000c, {kSize, 4096, 4}), bus = ask(0x3000d, {handle});
  check(handle && bus >> 30 == 3, "no memory");
  auto* const memory = static_cast<char*>(map(bus & 0x3fffffff, kSize));
  check(memory, "no mapping of memory");
  check(!map((bus & 0x3fffffff) - 0x100000, kSize) && !map(bus & 0x3fffffff, kSize + 4096),
        "others' memory can be mapped");
  test_registers();
  test_handlers();
  test_registers();
  test_ignoring();
  test_fork();

  std::memcpy(memory, code.data(), code.size());
  auto* const table = reinterpret_cast<float*>(memory + 0x4000);
  for (int k = 0; k < 16; ++k)
    for (int lane = 0; lane < 16; ++lane) {
      table[k * 32 + lane] = static_cast<float>(std::cos(2 * M_PI * k * lane / kCount));
      table[k * 32 + 16 + lane] = static_cast<float>(-std::sin(2 * M_PI * k * lane / kCount));
    }
  auto* const in = reinterpret_cast<float*>(memory + 0x8000);
  const float* const out = in + kTransforms * kBytes / 4;
  for (int i = 0; i < kTransforms * 2 * kCount; ++i) in[i] = static_cast<float>(std::sin(0.37 * i * i));

  set(kPctrs0 + 8, kStalled);
  set(kPctre, 0x80000003);
  set(kL2Cactl, 1 << 2);
  set(kSlcactl, 0x0f0f0f0f);
  set(kSrqcs, 1 << 0 | 1 << 7 | 1 << 8 | 1 << 16);
  for (uint32_t q = 0; q < kQpus; ++q) {
    auto* u = reinterpret_cast<uint32_t*>(memory + 0x6000 + 0x400 * q);
    *u++ = 32 * q;
    *u++ = bus + 0x4000;
    *u++ = q == 0;
    *u++ = kTransforms / kQpus;
    for (uint32_t t = q; t < kTransforms; t += kQpus) {
      *u++ = bus + 0x8000 + t * kBytes;
      *u++ = bus + 0x8000 + (kTransforms + t) * kBytes;
    }
    set(kSrqua, bus + 0x6000 + 0x400 * q);
    set(kSrqpc, bus);
  }
  wait_for(kQpus);
  check((get(kSrqcs) & 0xffbf) == kQpus << 8, "V3D_SRQCS");
  check(get(kPctr0) != 0, "nothing was counted");  // without waiting: what has ended has been counted
  if (count > 2) wait_for_stalls();
  std::printf("stalled %u\n", get(kPctr0 + 8));
  check(get(kDbqitc) != 0, "no interrupt was asked for");
  set(kDbqitc, ~0u);
  check(get(kDbqitc) == 0, "V3D_DBQITC");

  double wrong = 0, right = 0;
  for (int t = 0; t < kTransforms; ++t) {
    std::vector<Complex> x(kCount);
    for (size_t n = 0; n < kCount; ++n)
      x[n] = {in[t * 2 * kCount + static_cast<int>(n)], in[t * 2 * kCount + kCount + static_cast<int>(n)]};
    fft(&x);
    for (int k = 0; k < kCount; ++k) {
      const Complex got(out[t * 2 * kCount + k], out[t * 2 * kCount + kCount + k]);
      wrong += std::norm(got - x[static_cast<size_t>(k)]);
      right += std::norm(x[static_cast<size_t>(k)]);
    }
  }
  const double error = std::sqrt(wrong / right);
  std::printf("relative error %.2e\n", error);
  check(error < 1e-6, "wrong numbers");
  check(ask(0x3000e, {handle}) == 0 && ask(0x3000f, {handle}) == 0 && ask(0x3000f, {handle}) != 0,
        "releasing memory");
  return 0;
}
