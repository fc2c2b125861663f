/// Mappings of BOs: what can be mapped, where, and what stays of it.

#include <drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "tests/shim/client.h"

using namespace client;

namespace {

constexpr size_t kPage = 4096;

size_t lines_of(const char* path) {
  std::ifstream file(path);
  return static_cast<size_t>(
      std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
}

/// The first word of a BO by a mapping made for it.
uint32_t exchange_word(int fd, uint32_t bo, uint32_t to) {
  auto* const words = static_cast<uint32_t*>(map_bo(fd, bo, 4096));
  CHECK(words != MAP_FAILED);
  if (words == MAP_FAILED) return ~0u;
  const uint32_t was = std::exchange(words[0], to);
  munmap(words, 4096);
  return was;
}

}  // namespace

/// As Mesa's Vulkan drivers do whenever they begin a command buffer.
SCENARIO(bos_mapped_again) {
  const int fd = open_render(), other = open_render();
  for (uint32_t round = 1; round < 20; ++round) {
    std::vector<uint32_t> bos;
    for (int i = 0; i < 12; ++i) bos.push_back(create_bo(fd, 4096));
    const uint32_t same_number = create_bo(other, 4096);
    for (const uint32_t bo : bos) CHECK_EQ(exchange_word(fd, bo, round << 16 | bo), 0u);
    CHECK_EQ(exchange_word(other, same_number, 1), 0u);
    for (const uint32_t bo : bos) CHECK_EQ(exchange_word(fd, bo, round << 16 | bo), round << 16 | bo);
    CHECK_EQ(exchange_word(other, same_number, 1), 1u);
    // Memory that goes elsewhere.
    drm_prime_handle shared{};
    shared.handle = bos[3];
    CHECK_EQ(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &shared), 0);
    for (const uint32_t bo : bos) CHECK_EQ(exchange_word(fd, bo, bo), round << 16 | bo);
    auto* const words = static_cast<uint32_t*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, shared.fd, 0));
    CHECK(words != MAP_FAILED && words[0] == bos[3]);
    munmap(words, 4096);
    close(shared.fd);
    struct {
      uint32_t handle, flags;
      uint64_t offset;
    } wrong{bos[0], 1, 0};
    CHECK_ERRNO(ioctl(fd, _IOWR('d', 0x43, wrong), &wrong), EINVAL);
    // What is closed, here or in another process that has the file, is no more; its number is another one's.
    CHECK_EQ(close_bo(fd, bos[0]), 0);
    CHECK_EQ(map_offset(fd, bos[0]), 0u);
    const pid_t child = fork();
    if (child == 0) _exit(close_bo(fd, bos[1]));
    CHECK_EQ(wait_for(child), 0);
    CHECK_EQ(map_offset(fd, bos[1]), 0u);
    const uint32_t again = create_bo(fd, 4096);
    CHECK_EQ(exchange_word(fd, again, 7), 0u);
    CHECK_EQ(exchange_word(fd, bos[2], 0), bos[2]);
    for (size_t i = 2; i < bos.size(); ++i) CHECK_EQ(close_bo(fd, bos[i]), 0);
    CHECK_EQ(close_bo(fd, again), 0);
    CHECK_EQ(close_bo(other, same_number), 0);
  }
}

/// What a program may do with memory where a mapping of a BO is or was, which may still be there.
SCENARIO(mappings_that_stay) {
  const int fd = open_render();
  const uint32_t bo = create_bo(fd, 2 * kPage);
  const auto map = [&] { return static_cast<uint32_t*>(map_bo(fd, bo, 2 * kPage)); };
  const auto anonymous_at = [](void* place, int how) {
    return static_cast<uint32_t*>(
        mmap(place, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0));
  };
  uint32_t* words = map();
  words[0] = 1;
  words[kPage / 4] = 2;
  uint32_t* const second = map();
  CHECK(second != words && second[0] == 1 && second[kPage / 4] == 2);
  const auto shows_the_bo = [&](const uint32_t* mapping) {
    second[0] += 10;
    return mapping != MAP_FAILED && mapping != second && mapping[0] == second[0] && mapping[kPage / 4] == 2;
  };
  // Something else is mapped where it was.
  for (const int how : {MAP_FIXED, MAP_FIXED_NOREPLACE}) {
    CHECK_EQ(munmap(words, 2 * kPage), 0);
    uint32_t* const other = anonymous_at(words, how);
    CHECK(other == words && other[0] == 0);
    words = map();
    CHECK(words != other && shows_the_bo(words));
    CHECK_EQ(other[0], 0u);
    munmap(other, 2 * kPage);
  }
  // Something else is mapped over it, and unmapped.
  CHECK(anonymous_at(words, MAP_FIXED) == words);
  CHECK_EQ(munmap(words, 2 * kPage), 0);
  words = map();
  CHECK(shows_the_bo(words));
  // A part of it is unmapped, and then all, twice.
  CHECK_EQ(munmap(words + kPage / 4, kPage), 0);
  CHECK_EQ(munmap(words, 2 * kPage), 0);
  CHECK_EQ(munmap(words, 2 * kPage), 0);
  words = map();
  CHECK(shows_the_bo(words));
  // It is moved, and others get its place; by number, too.
  for (const bool by_number : {false, true}) {
    void* const moved =
        by_number
            ? reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
                  syscall(SYS_mremap, words, 2l * kPage, 2l * kPage, long{MREMAP_MAYMOVE | MREMAP_FIXED},
                          anonymous_at(nullptr, 0)))
            : mremap(words, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, anonymous_at(nullptr, 0));
    CHECK(moved != words && shows_the_bo(static_cast<uint32_t*>(moved)));
    CHECK(anonymous_at(words, MAP_FIXED_NOREPLACE) == words);
    words[0] = 77;
    CHECK_EQ(by_number ? syscall(SYS_munmap, words, 2l * kPage) : munmap(words, 2 * kPage), 0);
    words = map();
    CHECK(shows_the_bo(words));
    munmap(moved, 2 * kPage);
  }
  // It is made read-only.
  for (const bool by_number : {false, true}) {
    CHECK_EQ(by_number ? syscall(SYS_mprotect, words, 2l * kPage, long{PROT_READ})
                       : mprotect(words, 2 * kPage, PROT_READ),
             0);
    munmap(words, 2 * kPage);
    words = map();
    CHECK(shows_the_bo(words));
    words[1] = 3;
  }
  // A child unmaps its own.
  const pid_t child = fork();
  if (child == 0) _exit(munmap(words, 2 * kPage) == 0 && shows_the_bo(map()) ? 0 : 1);
  CHECK_EQ(wait_for(child), 0);
  CHECK(shows_the_bo(words));
}

/// They take no more of the process than they may.
SCENARIO(few_mappings_stay) {
  const int fd = open_render();
  std::vector<uint32_t> bos;
  for (int i = 0; i < 200; ++i) bos.push_back(create_bo(fd, kPage));
  exchange_word(fd, bos[0], 0);
  const size_t before = lines_of("/proc/self/maps");
  for (uint32_t round = 0; round < 3; ++round) {
    for (const uint32_t bo : bos)
      CHECK_EQ(exchange_word(fd, bo, round << 16 | bo), round ? (round - 1) << 16 | bo : 0);
    CHECK(lines_of("/proc/self/maps") <= before + 32);
  }
  // More than can be known at a time.
  std::vector<void*> mapped;
  for (int i = 0; i < 3; ++i)
    for (const uint32_t bo : bos) mapped.push_back(map_bo(fd, bo, kPage));
  for (size_t i = 0; i < mapped.size(); ++i)
    CHECK(mapped[i] != MAP_FAILED && *static_cast<uint32_t*>(mapped[i]) == (2u << 16 | bos[i % bos.size()]));
  for (void* const memory : mapped) CHECK_EQ(munmap(memory, kPage), 0);
  CHECK(lines_of("/proc/self/maps") <= before + 32);
  // Of many threads at once each finds what it wrote.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t round = 0; round < 200; ++round)
        for (size_t i = 0; i < 8; ++i) {
          auto* const words = static_cast<uint32_t*>(map_bo(fd, bos[i], kPage));
          CHECK_EQ(words[100 + t], round);
          words[100 + t] = round + 1;
          munmap(words, kPage);
        }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

SCENARIO(mappings) {
  int fd = open_render();
  uint32_t bo = create_bo(fd, 3 * 4096);
  auto* whole = static_cast<uint8_t*>(map_bo(fd, bo, 3 * 4096));
  CHECK(whole != MAP_FAILED);
  for (size_t i = 0; i < 3 * 4096; ++i) CHECK(whole[i] == 0);
  // v3dv maps exactly what it needs.
  for (size_t length : {1, 64, 80, 136, 184, 4096, 4097}) {
    auto* part = static_cast<uint8_t*>(map_bo(fd, bo, length));
    CHECK(part != MAP_FAILED);
    if (part == MAP_FAILED) continue;
    part[length - 1] = static_cast<uint8_t>(length);
    CHECK_EQ(whole[length - 1], static_cast<uint8_t>(length));
    munmap(part, length);
  }
  // At a chosen place; through a duplicate; after the file is closed.
  void* place = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  off_t offset = static_cast<off_t>(map_offset(fd, bo));
  CHECK(mmap64(place, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, copy, offset) == place);
  CHECK_EQ(static_cast<uint8_t*>(place)[63], uint8_t{64});
  auto by_number = syscall(SYS_mmap, nullptr, 4096l, long{PROT_READ}, long{MAP_SHARED}, long{copy}, offset);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): syscall() has no other way to return an address
  CHECK(by_number != -1 && reinterpret_cast<uint8_t*>(by_number)[63] == 64);
  CHECK_ERRNO(reinterpret_cast<long>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0)), EINVAL);
  CHECK_ERRNO(
      reinterpret_cast<long>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, offset + (off_t{1} << 40))),
      EINVAL);
  CHECK_ERRNO(reinterpret_cast<long>(mmap(nullptr, 4 * 4096, PROT_READ, MAP_SHARED, fd, offset)), EINVAL);
  CHECK_ERRNO(reinterpret_cast<long>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, offset)), EINVAL);
  // Just asked for, of another BO, and of one that is closed before it is mapped.
  const uint32_t next = create_bo(fd, 4096);
  const auto there = static_cast<off_t>(map_offset(fd, next));
  CHECK_ERRNO(reinterpret_cast<long>(mmap(nullptr, 2 * 4096, PROT_READ, MAP_SHARED, fd, there)), EINVAL);
  CHECK_EQ(static_cast<off_t>(map_offset(fd, next)), there);
  auto* second = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, offset));
  CHECK(second != MAP_FAILED && second[63] == 64);
  CHECK(map_offset(fd, next) != 0);
  CHECK_EQ(close_bo(fd, next), 0);
  CHECK_ERRNO(reinterpret_cast<long>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, there)), EINVAL);
  close(fd);
  close(copy);
  CHECK_EQ(whole[63], uint8_t{64});
  // Other files are mapped as ever.
  int self = open("/proc/self/exe", O_RDONLY);
  void* text = mmap(nullptr, 100, PROT_READ, MAP_PRIVATE, self, 0);
  CHECK(text != MAP_FAILED && memcmp(text, "\177ELF", 4) == 0);
  close(self);
}
