#!/usr/bin/env python3
"""Types the command lines of a page of README.md, docs/ and packaging/man as they are printed, one after the other, in a folder that
looks like a clone: each has to end well. Lines that this cannot do are rows of LEFT_OUT, with the reason; a line that is new is typed.
usage: examples_test.py SOURCE_FOLDER BUILD MESA SCRATCH PAGE
       examples_test.py SOURCE_FOLDER --pages     checks that every page with commands is a test, and every row is needed"""
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

# Pages of which something is typed. The commands of all others are left out, for the reason given.
TYPED = ("README.md", "docs/getting-started.md", "docs/running.md", "docs/qpu.md", "docs/watching.md", "docs/profile.md",
         "docs/timing.md", "docs/display.md", "docs/recording.md", "packaging/man/v3demu.1")
OTHER_PAGES = {
    "CONTRIBUTING.md": "builds and tests",
    "docs/applications.md": "programs that no test installs; tools/tour is ctest e2e.tour",
    "docs/inspect.md": "serves until it is interrupted; ctest e2e.inspect.page.*",
    "docs/conformance.md": "suites that lie on nobody's machine by default; tools/conformance is ctest tools.conformance",
    "docs/packages.md": "installs packages; packaging/deb --test looks at them, and ctest install.moved_prefix at a prefix",
    "docs/speed.md": "takes minutes",
}

# Beginnings of lines that are not typed.
LEFT_OUT = {
    r"packaging/(demo|check|setup|debian-root)": "installs packages, takes minutes",
    r"packaging/mesa --source|v3demu run --mesa|meson |ninja ": "builds a Mesa; ctest e2e.mesa_devenv",
    r"tools/(gallery|calibrate)": "takes minutes; ctest e2e.samples.*, e2e.calibrate and e2e.board.*",
    r"tools/evidence --add": "writes into the clone; ctest tools.evidence",
    r"tests/e2e/": "takes minutes; CI runs short forms",
    r"v3demu stop; rm -r": "removes the build",
    r"v3demu shader-db --mesa ": "two Mesas of one's own; ctest e2e.shader",
    r"v3demu run --(sandbox|seccomp)": "ctest e2e.box, which knows what the machine allows",
    r".*--arch ": "ctest e2e.arm64 and e2e.armhf",
    r"LD_PRELOAD=\S*libv3drec\.so V3DREC_FILE=(cube|wrong)|v3demu .* wrong\.v3dcap": "on a board, or of a file from one; ctest e2e.recorder.*",
    r"V3DEMU_GPU_MEM=256 ": "hello_fft is built from another project",
    r"code --install-extension": "no test has Visual Studio Code; ctest tools.editors",
    r"\./v3dprobe": "for a board; ctest e2e.board.*",
    r"V3DEMU_PERF_MAP=1 perf|perf report": "perf is not installed by packaging/setup",
    r"Xvfb :7|.*/Xorg :7|.*DISPLAY=:[07] |kill |v3demu run -- weston ": "displays with numbers that others may have; ctest e2e.x11.*, e2e.windows.*",
    r"v3demu desktop|.*weston_seat": "ctest e2e.screen.desktop, e2e.kms.weston",
    r"v3demu run -- glmark2-es2-drm -b shading:duration=10": "runs beside what comes next; ctest e2e.screen.*",
    r"v3demu screen": "of what runs; ctest e2e.screen.*",
}

# The same with fewer frames and seconds, an end, or a window on an X server in memory.
INSTEAD = ((r"--c (300|100)\b", "--c 2"), (r"-c 60\b", "-c 5"), (r"timeout 10 ", "timeout 2 "), (r"duration=\d+", "duration=1"),
           (r"^v3demu serve", "timeout -s INT 1 v3demu serve"),
           (r"v3demu (.*) -- glmark2-es2$", r"xvfb-run -a v3demu \1 -- glmark2-es2 -b build:duration=1"))

# What else than 0 a line ends with, and what of its output its page promises.
STATUS = {r"v3demu asm (--check )?lost\.qasm|printf .*\| v3demu asm --check": 1, r".*timeout (-s INT )?\d+ ": 124}
SAYS = {
    r"v3demu run -- vulkaninfo": r"V3D 7\.1\.7",
    r"v3demu run --device rpi4 -- vulkaninfo": r"V3D 4\.2\.14",
    r"xvfb-run -a v3demu run --device rpi3 -- es2_info": r"VC4 V3D 2\.1",
    r"LD_PRELOAD=.* vulkaninfo": r"V3D 7\.1\.7",
    r"v3demu run -- samples/qpu/double\.py": r"\[0\.0, 2\.0, 4\.0, 6\.0\] \.\.\. 2046\.0",
    r"v3demu run --device rpi3 -- samples/qpu/mailbox\.py": r"8 transforms of 256 numbers, relative error",
    r"printf .*\| v3demu asm --check|v3demu asm --check lost\.qasm|v3demu asm lost": "no-address",
    r"v3demu exec .* --out c=c\.npy": r"(?m)^c: f32\[64\] at 0x\w+: 0\.5, 1\.5, 2\.5,",
    r"v3demu exec .* --time": "on the board: .* us",
    r"v3demu replay --trace-qpu|v3demu exec .* --trace-qpu|V3DEMU_DEBUG=qpu": "==== .*program at",
    r"v3demu replay --explain-hang here": r"0 of \d+ jobs do not end well",
    r"v3demu replay --compare here": r" jobs compared: .* 0 different",
    r"v3demu replay --time": r"\b(ms|us)\b",
}
LIGHTING = """#version 310 es
precision mediump float;
in vec3 normal;
out vec4 colour;
void main() { colour = vec4(vec3(max(dot(normalize(normal), vec3(0.6, 0.8, 0.0)), 0.0)), 1.0); }
"""
MY_PROGRAM = "#!/bin/sh\nexec vulkan_samples --scene shadow --size 320x240 --output my_picture.ppm\n"


def reason_to_leave_out(line):
    return next((reason for pattern, reason in LEFT_OUT.items() if re.match(pattern, line)), None)


def first(table, line, otherwise):
    return next((value for pattern, value in table.items() if re.match(pattern, line)), otherwise)


def with_here_documents(lines):
    """Each as one line with the command that reads it."""
    lines = iter(lines)
    for line in lines:
        end = re.search(r"<<'?(\w+)'?$", line)
        yield line if not end else "\n".join([line, *itertools.takewhile(lambda text: text != end[1], lines), end[1]])


def command_lines(root, page):
    """Blocks of lines as a reader types them: without comments, continued lines as one."""
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    if page.startswith("packaging/man"):
        blocks = re.findall(r"(?ms)^\.EX\n(.*?)^\.EE", text.replace("\\-", "-"))
    else:
        blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", text)
    for block in blocks:
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        lines = [re.sub(r"(^|\s+)#.*", "", line).strip() for line in lines]
        yield list(with_here_documents(line for line in lines if line))


def check_pages(root):
    faults, unused = [], set(LEFT_OUT)
    pages = ["README.md", "CONTRIBUTING.md"] + [f"docs/{name}" for name in sorted(os.listdir(f"{root}/docs")) if name.endswith(".md")]
    pages += [f"packaging/man/{name}" for name in sorted(os.listdir(f"{root}/packaging/man"))]
    for page in pages:
        lines = [line for block in command_lines(root, page) for line in block]
        if bool(lines) != (page in TYPED or page in OTHER_PAGES):
            faults.append(f"{page} has {len(lines)} command lines, and is {'a' if page in TYPED else 'no'} test")
        if page in TYPED:
            unused -= {pattern for pattern in LEFT_OUT for line in lines if re.match(pattern, line)}
            if all(reason_to_leave_out(line) for line in lines):
                faults.append(f"nothing of {page} is typed")
    with open(f"{root}/tests/e2e/CMakeLists.txt", encoding="utf-8") as file:
        tests = re.search(r"foreach\(page ([^)]*)\)", file.read())[1].split()
    faults += [f"{page} is no test in tests/e2e/CMakeLists.txt" for page in TYPED if page not in tests]
    return faults + [f"no page has a line like {pattern}" for pattern in sorted(unused)]


def make_clone(root, build, mesa, scratch):
    """A folder in which the names of the tree and build/release are found, and what commands write goes nowhere else."""
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(f"{scratch}/build")
    os.makedirs(f"{scratch}/home")
    for name in os.listdir(root):
        if name not in ("build", ".git"):
            os.symlink(os.path.join(root, name), f"{scratch}/{name}")
    os.symlink(build, f"{scratch}/build/release")
    prefix = subprocess.run([f"{root}/packaging/mesa", "--prefix"], env={**os.environ, "V3DEMU_CACHE": f"{scratch}/cache"}, check=True,
                            capture_output=True, text=True).stdout.strip()
    os.makedirs(os.path.dirname(os.path.dirname(prefix)))
    os.symlink(mesa, os.path.dirname(prefix))
    with open(f"{scratch}/my_program", "w", encoding="ascii") as file:
        file.write(MY_PROGRAM)
    os.chmod(f"{scratch}/my_program", 0o755)
    os.makedirs(f"{scratch}/shaders")
    for name in ("lighting.frag", "shaders/lighting.frag"):
        with open(f"{scratch}/{name}", "w", encoding="ascii") as file:
            file.write(LIGHTING)


def type_block(lines, folder, environment):
    """Runs lines in one shell, as in a terminal; faults of each."""
    script = "".join(f"echo '>>> '{number}; {line}\necho \"<<< {number} $?\"\n" for number, line in enumerate(lines))
    with tempfile.TemporaryFile() as output:
        shell = subprocess.Popen(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            shell.wait(timeout=200)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    faults = []
    for number, line in enumerate(lines):
        said = re.search(rf"(?ms)^>>> {number}\n(.*?)<<< {number} (\d+)$", text)
        if not said:
            return faults + [f"{line}\n  did not end; said: {text[-800:]}"]
        status, expected = int(said[2]), first(STATUS, line, 0)
        if status not in (0, expected) or (expected == 1 and status == 0):
            faults.append(f"{line}\n  ended with {status}: {said[1][-800:]}")
        elif not re.search(first(SAYS, line, ""), said[1]):
            faults.append(f"{line}\n  does not say what its page promises: {said[1][-800:]}")
        elif "GPU errors" in said[1]:
            faults.append(f"{line}\n  had GPU errors: {said[1][-800:]}")
    return faults


def main():
    root = os.path.abspath(sys.argv[1])
    if sys.argv[2] == "--pages":
        sys.exit("\n".join(check_pages(root)) or 0)
    build, mesa, scratch, page = sys.argv[2:6]
    make_clone(root, build, mesa, scratch)
    runtime = tempfile.mkdtemp()  # short, as the name of a socket has to be
    kept = {name: value for name, value in os.environ.items() if not re.match("V3DEMU_|DISPLAY$|WAYLAND_DISPLAY$", name)}
    environment = {**kept, "PATH": f"{scratch}/build/release/bin:{os.environ['PATH']}", "HOME": f"{scratch}/home",
                   "XDG_RUNTIME_DIR": runtime, "V3DEMU_CACHE": f"{scratch}/cache"}
    faults = []
    try:
        for block in command_lines(root, page):
            lines = []
            for line in block:
                reason = reason_to_leave_out(line)
                if reason:
                    print(f"left out: {line} ({reason})")
                    continue
                for pattern, other in INSTEAD:
                    line = re.sub(pattern, other, line)
                print(f"typed: {line}")
                lines.append(line)
            faults += type_block(lines, scratch, environment)
    finally:
        subprocess.run(["v3demu", "stop"], env=environment, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(runtime, ignore_errors=True)
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
