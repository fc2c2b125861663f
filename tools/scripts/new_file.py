"""Files that take their names when they are whole: what tools/cli/files/new_file.h is for the programs in C++."""
import contextlib
import errno
import os
import stat
import tempfile


def check_regular(path):
    """OSError for what is there and no regular file, or a link that leads nowhere: it stays as it is."""
    if os.path.lexists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "this is no regular file, and stays as it is", str(path))


@contextlib.contextmanager
def new_name(path):
    """The name of an empty file beside it, which replaces it unless the body raises. Where a link leads is what is replaced."""
    check_regular(path)
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    mask = os.umask(0)
    os.umask(mask)
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~mask
    ending = os.path.splitext(name)[1][-32:]  # some programs go by it
    descriptor, draft = tempfile.mkstemp(ending, f".{os.getpid()}~", folder)
    try:
        os.fchmod(descriptor, mode)
        os.close(descriptor)
        yield draft
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


@contextlib.contextmanager
def new_file(path, mode="w", **options):
    """As open(), for the modes that write from the beginning."""
    with new_name(path) as draft:
        if "b" not in mode:
            options.setdefault("encoding", "utf-8")
        with open(draft, mode, **options) as file:
            yield file
