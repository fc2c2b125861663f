/// sigaction and signal: while the V3D's registers are mapped, SIGSEGV is the library's before it is the
/// program's, which does not notice.

#include <csignal>

#include "shim/board/register_window.h"
#include "shim/interpose/interpose.h"

namespace v3d::shim {

using SigAction = int(int, const struct sigaction*, struct sigaction*);
using Signal = sighandler_t(int, sighandler_t);

V3D_INTERPOSE(int, action_set, "sigaction",
              (int number, const struct sigaction* action, struct sigaction* old)) {
  int result;
  if (number == SIGSEGV && segv_action(action, old, &result)) return result;
  return V3D_NEXT(SigAction, "sigaction")(number, action, old);
}
V3D_ALIAS(int, action_set_internal, "__sigaction", "sigaction",
          (int, const struct sigaction*, struct sigaction*));

V3D_INTERPOSE(sighandler_t, signal_set, "signal", (int number, sighandler_t handler)) {
  struct sigaction action {
  }, old;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // as of 4.3BSD, which glibc's is
  sigaddset(&action.sa_mask, number);
  int result;
  if (number == SIGSEGV && segv_action(&action, &old, &result)) return old.sa_handler;
  return V3D_NEXT(Signal, "signal")(number, handler);
}
V3D_ALIAS(sighandler_t, signal_set_bsd, "bsd_signal", "signal", (int, sighandler_t));
V3D_ALIAS(sighandler_t, signal_set_s, "ssignal", "signal", (int, sighandler_t));

}  // namespace v3d::shim
