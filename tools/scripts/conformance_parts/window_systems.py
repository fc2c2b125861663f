"""The window system that a run has."""
import contextlib
import os

from gallery_parts import windows

# What dEQP calls the platform of a window system; in small letters it stands before the names of cases in Mesa's lists.
EGL_PLATFORMS = {"wayland": "Wayland", "xwayland": "x11", "xvfb": "x11"}


@contextlib.contextmanager
def window_system(options, folder):
    """Runs what the options ask for, and points the environment at it."""
    if not options.window_system:
        yield
        return
    if options.window_system == "xvfb":
        server = windows.Xvfb()
        variables = {"DISPLAY": server.display}
    else:
        server = windows.Weston(options.launcher, folder, xwayland=options.window_system == "xwayland")
        variables = {name: server.environment[name] for name in ("XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY")
                     if name in server.environment}
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        os.environ.pop(name, None)
    os.environ.update(variables)
    try:
        yield
    finally:
        server.stop()
