/// The transposer (Linux vc4_txp.c) writes what CRTCs of memory show into framebuffers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ioctl/display/scanout.h"
#include "ioctl/display/state.h"

namespace v3d::ioctl::kms {

/// The pictures of one commit, and where they go.
struct Write {
  struct Picture {
    Scanout shown;
    FramebufferPtr to;
  };
  uint64_t number;  ///< of the commit
  std::vector<Picture> pictures;
};

/// A thread that composes pictures, started at the first one. There is one at most for each CRTC of memory.
class Writer {
 public:
  /// @param written  called with the number of each, on the thread
  explicit Writer(std::function<void(uint64_t number)> written) : written_(std::move(written)) {}
  /// Waits for the end of what is being written, and forgets the rest.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void push(std::vector<Write> writes);

 private:
  void run();

  const std::function<void(uint64_t number)> written_;
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::deque<Write> queue_;
  bool stop_ = false;
  std::thread thread_;
};

/// Writes a picture into the memory of a framebuffer of its size, of which the alpha of what is opaque is 1.
void write_picture(const Write::Picture& picture);

}  // namespace v3d::ioctl::kms
