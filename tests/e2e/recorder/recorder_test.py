#!/usr/bin/env python3
"""libv3drec.so around a program of the kernel's interface alone: the recording replays to the very memory, what is chosen is
recorded, and what differs is found.

usage: recorder_test.py V3DEMU LIBRARY FOLDER SAXPY INTERRUPTED
"""
import os
import re
import shutil
import signal
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recording import Recorder, flipped, pages, read, read_packed  # noqa: E402
from capture_records import AFTER, AFTER_HASHES, CHUNK, END, HEADER_BYTES, JOB, records  # noqa: E402

V3DEMU, LIBRARY, FOLDER, SAXPY, INTERRUPTED = sys.argv[1:6]
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "qpu_programs")
NODE = "/dev/dri/renderD128"
# Two processes, each of which computes and has a file of its own.
TWO = ["sh", "-c", f"{SAXPY} {NODE} && {SAXPY} {NODE}"]

# Three dispatches; where a signal chooses, it comes before the second one and before the third. Then the process is killed.
DISPATCHES = """
import array, os, signal, sys
sys.path.insert(0, sys.argv[1])
import kernels, qpu_program, v3d_drm
device = v3d_drm.Device(v3d_drm.RENDER)
program, result = device.bo(qpu_program.SIZE), device.bo(4096)
if "LARGE" in os.environ:
    result = device.bo(1 << 20)
    result.words[:] = memoryview(array.array("I", range(1 << 18)))
for value in range(3):
    if value and "V3DREC_SIGNAL" in os.environ:
        os.kill(os.getpid(), signal.SIGUSR2)
    qpu_program.load(program, kernels.STORE, [result.address, value + 7], device.version)
    for attempt in range(2):
        try:
            device.submit_csd(qpu_program.config(device, program, 1), [program, result])
            break
        except InterruptedError:
            assert "INTERRUPTED" in os.environ and value + attempt == 0
    device.wait(program)
    assert result.words[0] == value + 7
os.kill(os.getpid(), signal.SIGKILL)
"""
# A dispatch that does not end.
HANG = """
import sys
sys.path.insert(0, sys.argv[1])
import qpu_program, v3d_drm
device = v3d_drm.Device(v3d_drm.RENDER)
program = device.bo(qpu_program.SIZE)
qpu_program.load(program, "loop:\\nb loop\\nnop\\nnop\\nnop\\nend", [], device.version)
device.submit_csd(qpu_program.config(device, program, 1), [program])
device.wait(program)
"""
# The second of two dispatches stores beyond its memory.
FAULT = """
import sys
sys.path.insert(0, sys.argv[1])
import kernels, qpu_program, v3d_drm
device = v3d_drm.Device(v3d_drm.RENDER)
program, result = device.bo(qpu_program.SIZE), device.bo(4096)
for address in (result.address, 0xe0000000):
    qpu_program.load(program, kernels.STORE, [address, 7], device.version)
    device.submit_csd(qpu_program.config(device, program, 1), [program, result])
    device.wait(program)
"""
# Its recording stops at its limit; its child's is another one.
FORK = """
import array, os, sys
sys.path.insert(0, sys.argv[1])
import kernels, qpu_program, v3d_drm
def dispatch(words):
    device = v3d_drm.Device(v3d_drm.RENDER)
    program, result = device.bo(qpu_program.SIZE), device.bo(4 * words)
    result.words[:] = memoryview(array.array("I", range(words)))
    qpu_program.load(program, kernels.STORE, [result.address, 7], device.version)
    device.submit_csd(qpu_program.config(device, program, 1), [program, result])
    device.wait(program)
    assert result.words[0] == 7
dispatch(1 << 18)
child = os.fork()
if child == 0:
    dispatch(1 << 10)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
# Threads make and close buffer objects while another one dispatches.
BUFFERS = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import kernels, qpu_program, v3d_drm
device = v3d_drm.Device(v3d_drm.RENDER)
program, result = device.bo(qpu_program.SIZE), device.bo(4096)
over = threading.Event()
def churn():
    while not over.is_set():
        handle = device.ioctl(v3d_drm.READ_WRITE, v3d_drm.CREATE_BO, v3d_drm.CreateBo(size=4096)).handle
        device.ioctl(v3d_drm.WRITE, v3d_drm.GEM_CLOSE, v3d_drm.GemClose(handle=handle))
threads = [threading.Thread(target=churn) for _ in range(3)]
for thread in threads:
    thread.start()
for value in range(40):
    qpu_program.load(program, kernels.STORE, [result.address, value + 7], device.version)
    device.submit_csd(qpu_program.config(device, program, 1), [program, result])
    device.wait(program)
    assert result.words[0] == value + 7
over.set()
for thread in threads:
    thread.join()
"""
# Dispatches of as many workgroups as a buffer object says, which their program stores, too: of three; of none, which
# runs nothing; and of one.
INDIRECT = """
import array, ctypes, sys
sys.path.insert(0, sys.argv[1])
import kernels, qpu_program, v3d_drm
device = v3d_drm.Device(v3d_drm.RENDER)
program, counts, result = device.bo(qpu_program.SIZE), device.bo(4096), device.bo(4096)
U32, U64 = ctypes.c_uint32, ctypes.c_uint64
SubmitCpu = v3d_drm.structure("SubmitCpu", bo_handles=U64, bo_handle_count=U32, flags=U32, extensions=U64)
Indirect = v3d_drm.structure("Indirect", next=U64, id=U32, flags=U32, submit=v3d_drm.SubmitCsd, indirect=U32, offset=U32,
                             wg_size=U32, wg_uniform_offsets=U32 * 3)
handles = array.array("I", [bo.handle for bo in (program, result)])
of_counts = array.array("I", [counts.handle])
for groups, stored in ((3, 3), (0, 3), (1, 1)):
    qpu_program.load(program, kernels.STORE, [result.address, 77], device.version)
    counts.words[2:5] = memoryview(array.array("I", [groups, 1, 1]))
    indirect = Indirect(id=2, indirect=program.handle, offset=8, wg_size=16)
    indirect.wg_uniform_offsets[:] = [qpu_program.UNIFORMS // 4 + 1, 0xffffffff, 0xffffffff]
    indirect.submit.cfg[:] = qpu_program.config(device, program, 1)
    indirect.submit.bo_handles, indirect.submit.bo_handle_count = handles.buffer_info()
    submit = SubmitCpu(bo_handles=of_counts.buffer_info()[0], bo_handle_count=1, flags=2, extensions=ctypes.addressof(indirect))
    device.ioctl(v3d_drm.WRITE, 0x4b, submit)
    device.wait(program)
    assert result.words[0] == stored, list(result.words[:20])
"""
DISPATCH = [sys.executable, "-B", "-c", DISPATCHES, PROGRAMS]


class RecorderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        cls.recorder = Recorder(V3DEMU, LIBRARY, FOLDER, ["--mesa", "system"])

    def record(self, name, command=(SAXPY, NODE), **variables):
        done, path = self.recorder.run(name, command, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("elements on", done.stdout)
        return done, path

    def test_a_recording_replays_to_the_very_memory(self):
        done, path = self.record("saxpy")
        self.assertEqual(done.stderr, f"v3drec: records into {path}\n")
        status, jobs = self.recorder.compare(path)
        self.assertEqual((status, [(job["kind"], job["equal"]) for job in jobs]), (0, [("compute", True)]))
        self.assertGreater(jobs[0]["pages"], 20)  # x and y of 24,576 floats each
        plain = self.recorder.replay(path, "--compare")
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        self.assertTrue(plain.stdout.endswith("1 of 1 jobs compared: 1 equal, 0 different\n"), plain.stdout)

    def test_a_bit_that_differs_is_found_by_its_word(self):
        path = self.record("planted")[1]
        data = read(path)
        changed = next(struct.unpack(f"<{len(payload) // 4}I", payload) for _, kind, payload in records(data) if kind == AFTER)
        address, number = changed[-2:]  # a page of y
        planted = flipped(data, pages(data)[number - 1] + 41, 6, os.path.join(FOLDER, "bit.v3dcap"))
        status, (job,) = self.recorder.compare(planted)
        self.assertEqual((status, job["equal"], job["images"]), (1, False, []))
        (place,) = job["memory"]
        self.assertEqual((place["words"], place["first"], place["largest"]), (1, address + 40, 1 << 14))
        self.assertEqual(place["here"] ^ place["recorded"], 1 << 14)
        said = self.recorder.replay(planted, "--compare")
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stdout, f"1 words differ by up to 16384 .* the first at 0x{address + 40:08x}: 0x")

    def test_what_is_chosen_is_recorded(self):
        self.assertFalse(os.path.exists(self.record("later", V3DREC_JOBS="2-9")[1]))
        self.assertTrue(os.path.exists(self.record("first", V3DREC_JOBS="1")[1]))
        self.assertFalse(os.path.exists(self.record("no_signal", V3DREC_SIGNAL="USR2")[1]))
        for wrong in (dict(V3DREC_JOBS="0"), dict(V3DREC_JOBS="3-2"), dict(V3DREC_FRAMES="x"), dict(V3DREC_SIGNAL="KILL")):
            done, path = self.record("wrong", **wrong)
            self.assertRegex(done.stderr, f"^v3drec: {next(iter(wrong))}=.*; nothing is recorded\n$")
            self.assertFalse(os.path.exists(path))

    def test_each_process_has_a_file_and_none_is_replaced(self):
        done, path = self.record("two", TWO)
        self.assertEqual(len(re.findall(r"elements on", done.stdout)), 2)
        for file in (path, path + ".2"):
            self.assertEqual(self.recorder.compare(file)[0], 0)
        os.remove(path + ".2")
        done = self.record("%p", TWO)[0]
        files = re.findall(r"records into (.*/\d+\.v3dcap)\n", done.stderr)
        self.assertEqual(len(set(files)), 2, done.stderr)

    def test_a_recording_that_cannot_be_written_leaves_the_program_alone(self):
        done = self.record("none", V3DREC_FILE=os.path.join(FOLDER, "nowhere", "x"))[0]
        self.assertRegex(done.stderr, r"^v3drec: the recording \S* stops after job 0: No such file or directory\n$")

    def test_pages_are_compressed(self):
        paths = [self.record(name, V3DREC_COMPRESS=choice)[1] for name, choice in (("packed", "1"), ("plain", "0"))]
        packed, plain = (read_packed(path) for path in paths)
        self.assertIn(CHUNK, {kind for _, kind, _ in records(packed)})
        self.assertNotIn(CHUNK, {kind for _, kind, _ in records(plain)})
        self.assertLess(len(packed), len(plain) * 3 // 4)
        self.assertEqual([kind for _, kind, _ in records(read(paths[0]))], [kind for _, kind, _ in records(plain)])
        for path in paths:
            self.assertEqual(self.recorder.compare(path)[0], 0)

    def test_hashes_alone_tell_whether_memory_is_equal(self):
        path = self.record("hashes", V3DREC_ONLY_HASHES="1")[1]
        data, whole = read(path), read(self.record("whole")[1])
        self.assertLess(len(pages(data)), len(pages(whole)))
        self.assertNotIn(AFTER, {kind for _, kind, _ in records(data)})
        status, (job,) = self.recorder.compare(path)
        self.assertEqual((status, job["equal"]), (0, True))
        at, _, payload = next(record for record in records(data) if record[1] == AFTER_HASHES)
        *_, address, _, _ = struct.unpack(f"<{len(payload) // 4}I", payload)
        planted = flipped(data, at + 8 + len(payload) - 1, 6, os.path.join(FOLDER, "hash.v3dcap"))
        status, (job,) = self.recorder.compare(planted)
        self.assertEqual((status, job["equal"], job["images"]), (1, False, []))
        self.assertEqual([(place["hashed_pages"], place["first_hashed"]) for place in job["memory"]], [(1, address)])
        self.assertIn(f"1 pages differ, the first at 0x{address:08x}; hashes alone are recorded", self.recorder.replay(planted, "--compare").stdout)

    def test_what_cannot_be_masked_is_not_recorded(self):
        done, path = self.record("masked", V3DREC_MASK_TEXTURES="1")
        self.assertRegex(done.stderr, r"^v3drec: V3DREC_MASK_TEXTURES is for the Raspberry Pi 0 to 3.*; nothing is recorded\n$")
        self.assertFalse(os.path.exists(path))

    def test_captures_say_nothing_of_memory_after_jobs(self):
        path = self.record("bare")[1]
        data = read(path)
        bare = os.path.join(FOLDER, "no_after.v3dcap")
        with open(bare, "wb") as file:
            file.write(data[:HEADER_BYTES])
            for at, kind, payload in records(data):
                if kind != AFTER:
                    file.write(data[at:at + 8] + payload)
        self.assertEqual(self.recorder.replay(bare).returncode, 0)
        done = self.recorder.replay(bare, "--compare")
        self.assertEqual(done.returncode, 1)
        self.assertIn("says nothing of memory after its jobs", done.stderr)
        self.assertEqual(self.recorder.compare(bare), (1, []))

    def dispatched(self, name, **variables):
        """The recording of a process that makes three dispatches and is killed, if there is one."""
        done, path = self.recorder.run(name, DISPATCH, V3DEMU=V3DEMU, **variables)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        return path

    def dispatches(self, name, **variables):
        """Kinds of its records."""
        path = self.dispatched(name, **variables)
        self.assertEqual(self.recorder.compare(path)[0], 0)
        return [kind for _, kind, _ in records(read(path))]

    def test_the_file_is_whole_though_the_program_is_killed(self):
        kinds = self.dispatches("killed")
        self.assertEqual((kinds.count(JOB), kinds[-2:]), (3, [AFTER, END]))

    def test_a_submission_that_is_interrupted_and_repeated_counts_once(self):
        for chosen, count in (("1", 1), ("2-3", 2)):
            self.assertEqual(self.dispatches("interrupted", INTERRUPTED="1", LD_PRELOAD=f"{LIBRARY} {INTERRUPTED}", V3DREC_JOBS=chosen).count(JOB), count)
        self.assertFalse(os.path.exists(self.dispatched("beyond", INTERRUPTED="1", LD_PRELOAD=f"{LIBRARY} {INTERRUPTED}", V3DREC_JOBS="4")))

    def test_a_signal_begins_and_ends_a_recording(self):
        self.assertEqual(self.dispatches("signalled", V3DREC_SIGNAL="USR2").count(JOB), 1)

    def test_indirect_dispatches_are_recorded_as_what_they_become(self):
        done, path = self.recorder.run("indirect", [sys.executable, "-B", "-c", INDIRECT, PROGRAMS], V3DEMU=V3DEMU)
        self.assertEqual((done.returncode, done.stderr), (0, f"v3drec: records into {path}\n"))
        status, jobs = self.recorder.compare(path)
        self.assertEqual((status, [(job["kind"], job["equal"]) for job in jobs]), (0, 2 * [("compute", True)]))
        written = [struct.unpack("<19I", payload)[3:6] for _, kind, payload in records(read(path)) if kind == JOB]
        self.assertEqual(written, [(groups << 16, 1 << 16, 1 << 16) for groups in (3, 1)])

    def test_a_hang_is_recorded(self):
        for name, patience in (("waited", "60000"), ("impatient", "1")):
            done, path = self.recorder.run(name, [sys.executable, "-B", "-c", HANG, PROGRAMS], V3DEMU=V3DEMU, V3DREC_PATIENCE=patience)
            self.assertEqual(done.returncode, 0, done.stderr)
            replayed = self.recorder.replay(path)
            self.assertEqual(replayed.returncode, 1)
            self.assertRegex(replayed.stdout, "^job 1: compute client 1  hang ")
            explained = self.recorder.replay(path, "--explain-hang")
            self.assertEqual((explained.returncode, explained.stderr), (1, ""))
            for said in ("job 1 of 1, compute of client 1 (1x1x1 workgroups", "compute thread 0 of program 0x", "in a loop that does not end",
                         " > job 1: compute", "1 of 1 jobs do not end well\n"):
                self.assertIn(said, explained.stdout)
            self.assertRegex(explained.stdout, r"(?m)^ > +[0-4]  0x[0-9a-f]{8}  (b +-32|nop)")
            if name == "waited":
                self.assertEqual([job["equal"] for job in self.recorder.compare(path)[1]], [True])
        self.assertIn("submission 1 has not ended in time: what it leaves is not recorded", done.stderr)
        self.assertEqual(self.recorder.compare(path)[1], [])

    def test_a_fault_is_explained(self):
        done, path = self.recorder.run("fault", [sys.executable, "-B", "-c", FAULT, PROGRAMS], V3DEMU=V3DEMU)
        self.assertEqual(done.returncode, 0, done.stderr)
        explained = self.recorder.replay(path, "--explain-hang")
        self.assertEqual((explained.returncode, explained.stderr), (1, ""))
        for said in ("job 2 of 2, compute of client 1", "1 MMU faults, the first at 0xe0000000, by the compute program at 0x",
                     "The memory around", "is mapped, and ends ", "    its last words: ", "   job 1: compute", " > job 2: compute",
                     "1 of 2 jobs do not end well\n"):
            self.assertIn(said, explained.stdout)
        self.assertRegex(explained.stdout, r"(?m)^ > +5  0x[0-9a-f]{8}  add +tmua, rf3, rf1")
        self.assertRegex(explained.stdout, r"rf3 +all +e0000000")
        good = self.recorder.replay(self.record("good")[1], "--explain-hang")
        self.assertEqual((good.returncode, good.stdout), (0, "0 of 1 jobs do not end well\n"))

    def test_a_recording_is_bounded_and_whole_when_it_stops(self):
        self.assertEqual(self.dispatches("large", LARGE="1", V3DREC_COMPRESS="0").count(JOB), 3)
        path = os.path.join(FOLDER, "large.v3dcap")
        self.assertGreater(os.path.getsize(path), 1 << 20)
        done = self.recorder.run("bounded", DISPATCH, LARGE="1", V3DREC_LIMIT="1", V3DREC_COMPRESS="0", V3DEMU=V3DEMU)[0]
        self.assertEqual(done.returncode, -signal.SIGKILL)  # the program's own end
        self.assertEqual(done.stderr.splitlines()[1:],
                         [f"v3drec: the recording {FOLDER}/bounded.v3dcap stops after job 0: it has the size that V3DREC_LIMIT allows"])
        bounded = os.path.join(FOLDER, "bounded.v3dcap")
        self.assertLess(os.path.getsize(bounded), 1 << 20)
        done = self.recorder.replay(bounded)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_child_has_a_recording_though_that_of_its_parent_stopped(self):
        done, path = self.recorder.run("fork", [sys.executable, "-B", "-c", FORK, PROGRAMS], V3DEMU=V3DEMU, V3DREC_LIMIT="1", V3DREC_COMPRESS="0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"the recording {path} stops after job 0", done.stderr)
        status, jobs = self.recorder.compare(path + ".2")
        self.assertEqual((status, [job["equal"] for job in jobs]), (0, [True]))

    def test_buffer_objects_that_come_and_go_in_other_threads(self):
        done, path = self.recorder.run("buffers", [sys.executable, "-B", "-c", BUFFERS, PROGRAMS], V3DEMU=V3DEMU)
        self.assertEqual(done.returncode, 0, done.stderr)
        status, jobs = self.recorder.compare(path)
        self.assertEqual((status, [job["equal"] for job in jobs]), (0, 40 * [True]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
