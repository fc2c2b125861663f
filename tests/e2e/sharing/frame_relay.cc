/// Frames from one process to another: one draws numbered frames into a few buffers that both know, the other
/// looks at each; nobody waits for the GPU, but through the fences of the buffers (implicit synchronisation).
///
///   frame_relay produce|consume SOCKET [--frames N] [--buffers N] [--size PIXELS] [--work N] [--linear]
///                                      [--reader gpu|sync|sync-file|poll|none] [--fault early]
///
/// SOCKET: the number of a descriptor, one end of a SOCK_SEQPACKET pair.
/// --reader: the consumer samples by a GPU context of its own (gpu), or reads the memory once
///   DMA_BUF_IOCTL_SYNC, a sync_file or poll() of the dma-buf says so, or without asking (none). All but gpu
///   need the producer's --linear.
/// --fault early: tells that a frame is submitted, or a buffer looked at, a moment before it is.
///
/// Exit status: 0 every pixel of every frame was right; 1 some were stale, torn or early; 2 something failed.
/// A side whose other side ends goes on with what it has, for a few frames.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "painter.h"

namespace e2e {
namespace {

struct Options {
  std::string role, reader = "gpu", fault;
  int socket = -1;
  uint32_t frames = 300, buffers = 3, size = 128, work = 40;
  bool linear = false;
};

/// A buffer with its descriptor, or a frame in one.
struct Message {
  enum Kind : uint32_t { kBuffer, kFrame, kRelease, kEnd } kind;
  uint32_t buffer, frame;
  Layout layout;
};

constexpr int kMoment = 4000;         // us: longer than it takes to submit
constexpr uint32_t kBatch = 8;        // frames that are sampled before any is looked at
constexpr uint32_t kFramesAlone = 3;  // after the other side has ended

/// @return false when the other side has ended
bool send(int socket, const Message& message, int fd = -1) {
  iovec data = {const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == sizeof message;
}

std::optional<Message> receive(int socket, int* fd = nullptr) {
  Message message;
  iovec data = {&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t received;
  do {
    received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received != sizeof message) return std::nullopt;
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (fd != nullptr && rights != nullptr) std::memcpy(fd, CMSG_DATA(rights), sizeof *fd);
  return message;
}

class Producer {
 public:
  explicit Producer(const Options& options) : options_(options), painter_(options.work) {
    for (uint32_t i = 0; i < options.buffers; ++i) {
      Message message = {Message::kBuffer, i, 0, {}};
      const int fd = painter_.allocate(options.size, options.size, options.linear, &message.layout);
      targets_.push_back(painter_.target(painter_.import(fd, message.layout)));
      layout_ = message.layout;
      has_reader_ = has_reader_ && send(options.socket, message, fd);
      close(fd);
    }
  }

  int run() {
    uint32_t frame = 1;
    for (; frame <= options_.frames && has_reader_; ++frame) {
      // Not that it has been looked at: that what looks is submitted.
      if (frame > options_.buffers) has_reader_ = receive(options_.socket).has_value();
      const bool early = options_.fault == "early";
      if (early) {
        tell(frame);
        usleep(kMoment);
      }
      draw(frame);
      if (!early) tell(frame);
    }
    if (has_reader_) {
      send(options_.socket, {Message::kEnd, 0, 0, {}});
      while (receive(options_.socket)) {
      }
    } else {
      for (uint32_t i = 0; i < kFramesAlone; ++i) draw(frame + i);
      check_last(frame + kFramesAlone - 1);
      std::printf("the reader ended; %u frames drawn\n", frame);
    }
    return 0;
  }

 private:
  void draw(uint32_t frame) { painter_.draw_frame(targets_[frame % options_.buffers], layout_, frame); }
  void tell(uint32_t frame) {
    if (has_reader_)
      has_reader_ = send(options_.socket, {Message::kFrame, frame % options_.buffers, frame, {}});
  }
  void check_last(uint32_t frame) {
    const auto pixels = painter_.pixels(targets_[frame % options_.buffers], layout_);
    require(pixels.front() == expected_pixel(frame, 0, 0), "the buffers are still drawn to");
  }

  const Options options_;
  Painter painter_;
  std::vector<GLuint> targets_;
  Layout layout_ = {};
  bool has_reader_ = true;
};

class Consumer {
 public:
  explicit Consumer(const Options& options) : options_(options), painter_(0) {}

  int run() {
    bool ended = false;
    while (!ended) {
      int fd = -1;
      const auto message = receive(options_.socket, &fd);
      if (!message) break;
      switch (message->kind) {
        case Message::kBuffer:
          add_buffer(fd, message->layout);
          break;
        case Message::kFrame:
          look(*message);
          break;
        default:
          ended = true;
      }
    }
    check_sampled();
    if (!ended) go_on();
    return report(ended);
  }

 private:
  struct Buffer {
    int fd;
    GLuint texture = 0;
    const uint32_t* memory = nullptr;
  };
  /// The first frame whose number a picture holds, and whether that is all of it.
  enum class Seen { kRight, kStale, kNewer, kTorn };

  bool samples() const { return options_.reader == "gpu"; }

  void add_buffer(int fd, const Layout& layout) {
    require(fd >= 0, "a descriptor comes with a buffer");
    layout_ = layout;
    Buffer buffer{fd};
    if (samples()) {
      buffer.texture = painter_.import(fd, layout);
      while (results_.size() < kBatch)
        results_.push_back(painter_.target(painter_.texture(layout.width, layout.height)));
    } else {
      void* memory = mmap(nullptr, size_t{layout.stride} * layout.height, PROT_READ, MAP_SHARED, fd, 0);
      require(memory != MAP_FAILED, "a dma-buf is mapped");
      buffer.memory = static_cast<const uint32_t*>(memory) + layout.offset / 4;
    }
    buffers_.push_back(buffer);
  }

  void look(const Message& message) {
    require(message.buffer < buffers_.size(), "a known buffer");
    const bool early = options_.fault == "early";
    if (early) {
      release();
      usleep(kMoment);
    }
    if (samples()) {
      painter_.sample(buffers_[message.buffer].texture, results_[sampled_.size()], layout_);
      sampled_.push_back(message.frame);
    } else {
      read(buffers_[message.buffer], message.frame);
    }
    if (!early) release();
    if (sampled_.size() == kBatch) check_sampled();
    last_ = message.frame;
  }

  void release() { send(options_.socket, {Message::kRelease, 0, 0, {}}); }

  void check_sampled() {
    for (size_t i = 0; i < sampled_.size(); ++i) {
      const auto pixels = painter_.pixels(results_[i], layout_);
      judge(sampled_[i], pixels.data(), layout_.width);
    }
    sampled_.clear();
  }

  void read(const Buffer& buffer, uint32_t frame) {
    dma_buf_sync access = {DMA_BUF_SYNC_READ | DMA_BUF_SYNC_START};
    if (options_.reader == "sync") {
      require(ioctl(buffer.fd, DMA_BUF_IOCTL_SYNC, &access) == 0, "DMA_BUF_IOCTL_SYNC");
    } else if (options_.reader == "sync-file") {
      dma_buf_export_sync_file exported = {DMA_BUF_SYNC_READ, -1};
      require(ioctl(buffer.fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &exported) == 0, "EXPORT_SYNC_FILE");
      wait_for(exported.fd);
      close(exported.fd);
    } else if (options_.reader == "poll") {
      wait_for(buffer.fd);
    }
    judge(frame, buffer.memory, layout_.stride / 4);
    access.flags = DMA_BUF_SYNC_READ | DMA_BUF_SYNC_END;
    if (options_.reader == "sync") ioctl(buffer.fd, DMA_BUF_IOCTL_SYNC, &access);
  }

  static void wait_for(int fd) {
    pollfd ready = {fd, POLLIN, 0};
    int count;
    do {
      count = poll(&ready, 1, -1);
    } while (count < 0 && errno == EINTR);
    require(count == 1 && ready.revents == POLLIN, "poll() waits for a fence");
  }

  Seen compare(uint32_t frame, const uint32_t* pixels, size_t pitch) const {
    const uint32_t first = pixels[0] & 0xFFFF;
    for (uint32_t y = 0; y < layout_.height; ++y)
      for (uint32_t x = 0; x < layout_.width; ++x)
        if (pixels[y * pitch + x] != expected_pixel(first, x, y)) return Seen::kTorn;
    return first == (frame & 0xFFFF) ? Seen::kRight : first < frame ? Seen::kStale : Seen::kNewer;
  }

  void judge(uint32_t frame, const uint32_t* pixels, size_t pitch) {
    ++checked_;
    if (const Seen seen = compare(frame, pixels, pitch); seen != Seen::kRight) wrong_[frame] = seen;
  }

  /// The other side has ended: what it has drawn is still there, and can be looked at.
  void go_on() {
    for (uint32_t i = 0; i < kFramesAlone && !buffers_.empty() && samples(); ++i) {
      painter_.sample(buffers_[i % buffers_.size()].texture, results_[0], layout_);
      painter_.pixels(results_[0], layout_);
    }
    // Its jobs that did not run by then never will.
    const uint32_t in_flight = static_cast<uint32_t>(buffers_.size());
    std::erase_if(wrong_, [&](const auto& w) { return w.first + in_flight > last_; });
  }

  int report(bool ended) const {
    const auto count = [&](Seen seen) {
      return std::count_if(wrong_.begin(), wrong_.end(), [&](const auto& w) { return w.second == seen; });
    };
    std::printf("%u frames looked at, %zd stale, %zd newer, %zd torn%s\n", checked_, count(Seen::kStale),
                count(Seen::kNewer), count(Seen::kTorn), ended ? "" : "; the producer ended");
    return wrong_.empty() ? 0 : 1;
  }

  const Options options_;
  Painter painter_;
  Layout layout_ = {};
  std::vector<Buffer> buffers_;
  std::vector<GLuint> results_;    // kBatch of them
  std::vector<uint32_t> sampled_;  // frames that lie there
  std::map<uint32_t, Seen> wrong_;
  uint32_t checked_ = 0, last_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  require(argc >= 3, "usage: frame_relay produce|consume SOCKET [OPTION...]");
  options.role = argv[1];
  options.socket = std::atoi(argv[2]);
  const std::map<std::string, uint32_t*> numbers = {{"--frames", &options.frames},
                                                    {"--buffers", &options.buffers},
                                                    {"--size", &options.size},
                                                    {"--work", &options.work}};
  const std::map<std::string, std::string*> words = {{"--reader", &options.reader},
                                                     {"--fault", &options.fault}};
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--linear") {
      options.linear = true;
      continue;
    }
    require(i + 1 < argc && (numbers.count(name) || words.count(name)), "an option", argv[i]);
    if (numbers.count(name))
      *numbers.at(name) = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    else
      *words.at(name) = argv[++i];
  }
  require(options.frames < 65536 && options.buffers > 0, "frames have numbers of 16 bits");
  return options;
}

}  // namespace
}  // namespace e2e

int main(int argc, char** argv) {
  const e2e::Options options = e2e::parse(argc, argv);
  return options.role == "produce" ? e2e::Producer(options).run() : e2e::Consumer(options).run();
}
