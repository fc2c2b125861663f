#include "shim/process/counts.h"

#include "shim/process/config.h"
#include "shim/process/text.h"

namespace v3d::shim {
namespace {

[[gnu::destructor]] void tell() {
  if (!config().counts) return;
  Text<128> line;
  line.add(counts[kRequests].load())
      .add(" requests, ")
      .add(counts[kSocketCalls].load())
      .add(" socket calls, ");
  line.add(counts[kFutexCalls].load()).add(" futex calls");
  complain(line.c_str());
}

}  // namespace
}  // namespace v3d::shim
