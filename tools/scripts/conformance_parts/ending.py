"""A run that is told to end: the programs that it has started end with it, and what they leave half done is no result."""
import os
import select
import signal
import subprocess
import threading

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ended(BaseException):
    """Raised in the main thread once, so that what is open there is closed. status: as a shell tells of the signal."""

    def __init__(self, number):
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.status = 128 + number


_lock = threading.RLock()  # a signal may come while the main thread holds it
_groups = set()
_told = threading.Event()


def is_told():
    return _told.is_set()


def _kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _on_signal(number, _):
    first = not _told.is_set()
    _told.set()
    with _lock:
        for group in _groups:
            _kill(group)
    if first:
        raise Ended(number)


def heed_signals():
    """From now on. Where a signal is ignored (nohup) it stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _on_signal)


def start(command, **options):
    """A process with a group of its own, for wait()."""
    child = subprocess.Popen(command, start_new_session=True, **options)  # pylint: disable=consider-using-with
    with _lock:
        _groups.add(child.pid)
    if is_told():
        _kill(child.pid)
    return child


def wait(child, timeout=None):
    """Its exit status; subprocess.TimeoutExpired after so many seconds. Until this returns its number is nobody else's."""
    if child.returncode is None:
        process = os.pidfd_open(child.pid)
        try:
            if not select.select([process], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(child.args, timeout)
        finally:
            os.close(process)
    with _lock:
        _groups.discard(child.pid)
        return child.wait()


def run(command, timeout=None, **options):
    """As subprocess.run() of text without check; the whole group ends after so many seconds."""
    child = start(command, **options)
    try:
        said = child.communicate(timeout=timeout)[0] if options.get("stdout") else None
        return subprocess.CompletedProcess(command, wait(child, timeout), said)
    except BaseException:
        _kill(child.pid)
        wait(child)
        raise
