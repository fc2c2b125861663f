/// The firmware's mailbox.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/shim/client.h"

using namespace client;

namespace {

constexpr unsigned long kProperty = _IOWR(100, 0, char*);
constexpr uint32_t kSuccess = 0x80000000;
using Words = std::vector<uint32_t>;

/// The list of one tag, with that request in a value buffer of some words.
Words list_of(uint32_t tag, uint32_t room, const Words& request = {}) {
  Words words = {0, 0, tag, room * 4, 0};
  words.insert(words.end(), request.begin(), request.end());
  words.resize(5 + room);
  words.push_back(0);
  words[0] = static_cast<uint32_t>(words.size() * 4);
  return words;
}

int send(Words* words, const char* node = "/dev/vcio") {
  const int fd = open(node, O_RDONLY);
  const int result = ioctl(fd, kProperty, words->data());
  const int error = errno;
  close(fd);
  errno = error;
  return result;
}

/// The value that a property has, without what the buffer has more. Empty: it is refused.
Words property(uint32_t tag, uint32_t room, const Words& request = {}) {
  Words words = list_of(tag, room, request);
  if (send(&words) < 0) return {};
  CHECK_EQ(words[1], kSuccess);
  CHECK(words[4] & kSuccess);
  const uint32_t bytes = words[4] & ~kSuccess;
  return {words.begin() + 5, words.begin() + 5 + std::min((bytes + 3) / 4, room)};
}

std::string command(const std::string& text, uint32_t* error, uint32_t room = 257) {
  Words request(1 + (text.size() + 4) / 4);
  memcpy(&request[1], text.c_str(), text.size() + 1);
  Words words = list_of(0x30080, room, request);
  if (send(&words, "/dev/vcio_gencmd") < 0) return "errno " + std::to_string(errno);
  *error = words[5];
  return reinterpret_cast<const char*>(&words[6]);
}
std::string command(const std::string& text) {
  uint32_t error;
  std::string answer = command(text, &error);
  CHECK_EQ(error, 0u);
  return answer;
}

}  // namespace

SCENARIO(firmware_of_a_pi5) {
  CHECK(property(0x10002, 1) == Words{0xc04170});
  CHECK(property(0x10004, 2) == (Words{0x76336465, 0x10000000}));
  CHECK(property(0x10006, 2) == (Words{0x3fc00000, 4 << 20}));
  CHECK(property(0x30002, 2, {5}) == (Words{5, 960'000'000}));
  CHECK(property(0x30007, 2, {5}) == (Words{5, 500'000'000}));
  CHECK(property(0x30047, 2, {5}) == (Words{5, 0}));  // without a job the clock stands
  CHECK(property(0x30047, 2, {3}) == (Words{3, 2'400'023'808}));
  CHECK(property(0x30002, 2, {99}) == (Words{99, 0}));  // no such clock
  CHECK(property(0x30046, 1) == Words{0});
  CHECK(property(0x10002, 0).empty());  // an answer without room is cut

  CHECK_EQ(command("measure_clock v3d"), "frequency(0)=0");
  CHECK_EQ(command("get_mem gpu"), "gpu=4M");
  CHECK_EQ(command("get_mem"), "error=2 error_msg=\"Invalid arguments\"");
  CHECK_EQ(command("measure_volts  sdram_c"), "volt=0.6000V");
  CHECK_EQ(command("measure_temp"), "temp=48.3'C");
  CHECK_EQ(command("get_config total_mem"), "total_mem=4096");
  CHECK(command("get_config int").find("\nv3d_freq=960\n") != std::string::npos);
  CHECK(command("version").ends_with("\nversion 66f33f7e (release) (embedded)"));
  CHECK(command("commands").starts_with("commands=\"commands, "));
  CHECK_EQ(command("pmic_read_adc EXT5V_V"), "      EXT5V_V volt(24)=5.11478000V");
  uint32_t error;
  CHECK_EQ(command("display_power", &error), "error=1 error_msg=\"Command not registered\"");
  CHECK_EQ(error, ~0u);
  CHECK_EQ(command("version", &error, 3), "2026/05");  // as much as there is room for, and a zero
}

SCENARIO(firmware_of_a_pi4) {
  CHECK(property(0x10002, 1) == Words{0xc03114});
  CHECK(property(0x10005, 2) == (Words{0, 948 << 20}));
  CHECK(property(0x30004, 2, {5}) == (Words{5, 500'000'000}));
  CHECK_EQ(command("measure_clock v3d"), "frequency(46)=250000496");
  CHECK_EQ(command("measure_clock h264"), "frequency(28)=0");
  CHECK_EQ(command("get_mem arm"), "arm=948M");
  CHECK_EQ(command("codec_enabled H264"), "H264=enabled");
  CHECK_EQ(command("display_power"), "display_power=1");
}

SCENARIO(firmware_of_a_pi0) {
  CHECK(property(0x10002, 1) == Words{0x9000c1});
  CHECK(property(0x10005, 2) == (Words{0, 448 << 20}));
  CHECK(property(0x10006, 2) == (Words{448 << 20, 64 << 20}));
  CHECK(property(0x30004, 2, {5}) == (Words{5, 300'000'000}));
  CHECK_EQ(command("get_mem arm"), "arm=448M");
  CHECK_EQ(command("get_config arm_freq"), "arm_freq=1000");
  CHECK_EQ(command("get_config gpu_freq_min"), "gpu_freq_min=250");
  CHECK_EQ(command("get_config v3d_freq"), "v3d_freq=0");
  CHECK_EQ(command("display_power"), "display_power=1");
}

/// Whatever threads of its parent were about when it was forked off.
SCENARIO(firmware_in_children) {
  const Words made = property(0x3000c, 3, {4096, 4096, 4});
  CHECK_EQ(made.size(), 1u);
  const auto locks = [&] { return property(0x3000d, 3, {made[0]}).at(0) != 0; };
  CHECK(locks());
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) CHECK(locks());
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(!locks());
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  }
  over = true;
  other.join();
}

/// The daemon's monitor.
SCENARIO(firmware_reads_the_monitor) {
  const Words first = property(0x30020, 34, {0}), none = property(0x30020, 34, {9});
  CHECK(first.size() == 34 && first[0] == 0 && first[1] == 0 && first[2] == 0xffffff00);
  CHECK(none.size() == 34 && none[0] == 9 && none[1] == 1);
}

/// As drivers/char/broadcom/vcio.c and the firmware refuse them.
SCENARIO(firmware_errors) {
  const int fd = open("/dev/vcio", O_RDWR | O_CLOEXEC);
  CHECK_ERRNO(ioctl(fd, kProperty, nullptr), EFAULT);
  CHECK_ERRNO(ioctl(fd, _IOWR(100, 1, char*), nullptr), EINVAL);
  Words words = {8, 0, 0, 0};
  CHECK_ERRNO(send(&words), EINVAL);
  words = {14, 0, 0, 0};
  CHECK_ERRNO(send(&words), EINVAL);
  words = {5u << 20, 0, 0, 0};
  CHECK_ERRNO(send(&words), ENOMEM);
  words = {2u << 20, 0, 0, 0};
  words.resize(words[0] / 4);
  CHECK_ERRNO(send(&words), EINVAL);
  words = {12, 0, 0};
  CHECK_EQ(send(&words), 0);  // an empty list
  CHECK_EQ(words[1], kSuccess);

  words = list_of(0x12345, 1, {7});
  const Words before = words;
  CHECK_ERRNO(send(&words), EINVAL);  // no such property
  CHECK(words == before);
  words = list_of(0x30011, 4);  // EXECUTE_QPU, of which the library says that it is not implemented
  CHECK_ERRNO(send(&words), EINVAL);
  words = list_of(0x10002, 1);
  words[3] = 1000;  // more than there is
  CHECK_ERRNO(send(&words), EINVAL);
  words = list_of(0x10002, 1);
  CHECK_ERRNO(send(&words, "/dev/vcio_gencmd"), EPERM);

  // Two tags, and a rest that vcgencmd leaves unset.
  words = {48, 0, 0x10002, 4, 0, 0, 0x30046, 4, 0, 9, 77, 0};
  CHECK_EQ(send(&words), 0);
  CHECK(words ==
        (Words{48, kSuccess, 0x10002, 4, kSuccess | 4, 0xc04170, 0x30046, 4, kSuccess | 4, 0, 77, 0}));
  close(fd);
}
