/// A Fence is one of DRI3's FenceFromFD: a word in a page that client and server share (libxshmfence). The
/// client may take the page away by truncating its file; the process outlives that.
#pragma once

#include <memory>

struct xshmfence;

namespace v3d::xproxy {

class Fence {
 public:
  /// Null: the descriptor cannot be mapped.
  static std::shared_ptr<Fence> map(int descriptor);
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  void trigger();
  void reset();
  bool triggered();

 private:
  explicit Fence(xshmfence* page) : page_(page) {}

  xshmfence* page_;
};

}  // namespace v3d::xproxy
