#!/usr/bin/env python3
"""v3demu debug, as an editor drives it: a client of the Debug Adapter Protocol.

  debug_test.py SOURCE_FOLDER V3DEMU
"""
import base64
import json
import os
import queue
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE, V3DEMU = sys.argv[1:3]
ADD = os.path.join(SOURCE, "samples", "qpu", "add.qasm")
VECTORS = {"program": ADD, "buffers": ["a=f32[64]=count", "b=f32[64]=0.5", "c=f32[64]"], "threads": 4}
PATIENCE = 120

with open(ADD, encoding="utf-8") as text:
    LINES = text.read().split("\n")


def line_of(part):
    return next(number for number, line in enumerate(LINES, 1) if part in line)


class Client:
    def __init__(self):
        self.adapter = subprocess.Popen([V3DEMU, "debug"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # pylint: disable=consider-using-with
        self.sequence = 0
        self.messages = queue.Queue()
        self.kept = []
        self.output = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            length = 0
            while line := self.adapter.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return self.messages.put(None)
            self.messages.put(json.loads(self.adapter.stdout.read(length)))

    def _next(self):
        message = self.messages.get(timeout=PATIENCE)
        if message is None:
            raise EOFError(self.adapter.stderr.read().decode())
        return message

    def send(self, command, **arguments):
        self.sequence += 1
        body = json.dumps({"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}).encode()
        self.adapter.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.adapter.stdin.flush()
        while True:
            message = self._next()
            if message["type"] == "response":
                assert message["request_seq"] == self.sequence, message
                return message
            self.kept.append(message)

    def ask(self, command, **arguments):
        response = self.send(command, **arguments)
        assert response["success"], response
        return response.get("body")

    def event(self, *names):
        """The next of these; output is kept."""
        while True:
            message = self.kept.pop(0) if self.kept else self._next()
            if message["event"] == "output":
                self.output += message["body"]["output"]
            if message["event"] in names:
                return message["body"]

    def launch(self, breakpoints=(), **arguments):
        self.ask("initialize", adapterID="v3demu", linesStartAt1=True)
        self.ask("launch", **{**VECTORS, **arguments})
        self.event("initialized")
        told = self.ask("setBreakpoints", source={"path": arguments.get("program", ADD)}, breakpoints=list(breakpoints))
        self.ask("configurationDone")
        return told["breakpoints"]

    def frame(self, thread):
        return self.ask("stackTrace", threadId=thread)["stackFrames"][0]

    def value(self, expression, thread):
        return self.ask("evaluate", expression=expression, frameId=thread)["result"]

    def close(self):
        self.adapter.stdin.close()
        self.adapter.wait(timeout=PATIENCE)
        self.adapter.stdout.close()
        self.adapter.stderr.close()


class DebugTest(unittest.TestCase):
    def setUp(self):
        self.client = Client()
        self.addCleanup(self.client.close)

    def program(self, text):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "kernel.qpu")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def check_at(self, halt, reason, line):
        self.assertEqual(halt["reason"], reason, halt)
        self.assertEqual(self.client.frame(halt["threadId"])["line"], line)
        return halt["threadId"]

    def scopes(self, thread):
        return {scope["name"]: scope["variablesReference"] for scope in self.client.ask("scopes", frameId=thread)["scopes"]}

    def variables(self, reference, **arguments):
        return {one["name"]: one for one in self.client.ask("variables", variablesReference=reference, **arguments)["variables"]}

    def test_breakpoints_steps_and_what_lanes_have(self):
        client = self.client
        told = client.launch([{"line": line_of("fadd rf4")}])
        self.assertTrue(told[0]["verified"], told)
        halt = client.event("stopped")
        thread = self.check_at(halt, "breakpoint", line_of("fadd rf4"))
        self.assertEqual(halt["hitBreakpointIds"], [told[0]["id"]])
        self.assertEqual(client.ask("threads")["threads"], [{"id": thread, "name": "workgroup 0:0:0, invocations 0 to 15"}])
        self.assertEqual(client.value("rf4[3]", thread), "0x40400000  1077936128  3")
        client.ask("next", threadId=thread)
        self.check_at(client.event("stopped"), "step", line_of("fadd rf4") + 1)
        scopes = self.scopes(thread)
        self.assertEqual(list(scopes), ["Registers", "Flags", "Uniforms", "Buffers", "Thread"])
        registers = self.variables(scopes["Registers"])
        self.assertEqual(len(registers), 64)
        lanes = self.variables(registers["rf4"]["variablesReference"])
        self.assertEqual([float(lanes[f"[{n}]"]["value"].split()[-1]) for n in range(16)], [n + 0.5 for n in range(16)])
        self.assertEqual(self.variables(registers["rf4"]["variablesReference"], format={"hex": True})["[0]"]["value"], "0x3f000000")
        uniforms = self.variables(scopes["Uniforms"])
        self.assertTrue(uniforms["next"]["value"].startswith("[3] "), uniforms)
        buffers = self.variables(scopes["Buffers"])
        some = self.variables(buffers["a"]["variablesReference"], start=60, count=2)
        self.assertEqual([(name, one["value"]) for name, one in some.items()], [("[60]", "60"), ("[61]", "61")])
        memory = client.ask("readMemory", memoryReference=buffers["b"]["memoryReference"], offset=4, count=8)
        self.assertEqual(struct.unpack("<2f", base64.b64decode(memory["data"])), (0.5, 0.5))
        # c is stored two lines below, and the next threads come to the breakpoint, too.
        client.ask("setBreakpoints", source={"path": ADD}, breakpoints=[{"line": line_of("tmuwt")}])
        client.ask("continue", threadId=thread)
        self.check_at(client.event("stopped"), "breakpoint", line_of("tmuwt"))
        self.assertEqual(client.value("c[2]", thread), "2.5")
        client.ask("setBreakpoints", source={"path": ADD}, breakpoints=[])
        client.ask("continue", threadId=thread)
        self.assertEqual(client.event("exited"), {"exitCode": 0})
        client.event("terminated")
        self.assertIn("c: f32[64]: 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, ..., 63.5\n", client.output)
        client.ask("disconnect")
        self.assertEqual(client.adapter.wait(timeout=PATIENCE), 0)

    def test_steps_back(self):
        client = self.client
        client.launch([{"line": line_of("fadd rf4")}, {"line": line_of("shl rf1, rf1, 4")}])
        thread = self.check_at(client.event("stopped"), "breakpoint", line_of("shl rf1, rf1, 4"))
        client.ask("continue", threadId=thread)
        self.check_at(client.event("stopped"), "breakpoint", line_of("fadd rf4"))
        for line in ("ldtmu.rf5", "ldtmu.rf4"):
            client.ask("stepBack", threadId=thread)
            self.check_at(client.event("stopped"), "step", line_of(line))
        client.ask("next", threadId=thread)
        client.event("stopped")
        self.assertEqual(client.value("rf4[5]", thread).split()[-1], "5")
        client.ask("reverseContinue", threadId=thread)
        self.check_at(client.event("stopped"), "step", line_of("shl rf1, rf1, 4"))
        client.ask("stepBack", threadId=thread)
        self.check_at(client.event("stopped"), "step", line_of("mov rf1, rf3.ul"))
        refused = client.send("stepBack", threadId=thread)
        self.assertEqual((refused["success"], refused["message"]), (False, "the thread has executed nothing yet"))

    def test_conditions_hits_and_threads(self):
        client = self.client
        told = client.launch([{"line": line_of("fadd rf4"), "condition": "rf4 > 40.0"}, {"line": line_of("tmuwt"), "hitCondition": "4"},
                              {"line": 1, "condition": "nobody == 1"}, {"line": len(LINES) + 5}], stopOnEntry=True)
        self.assertEqual([one["verified"] for one in told], [True, True, False, False])
        self.assertIn('"nobody" is no register', told[2]["message"])
        halt = client.event("stopped")
        thread = self.check_at(halt, "entry", line_of("mov rf1, rf3.ul"))
        self.assertEqual(client.send("stackTrace", threadId=thread + 1)["message"], "that thread has not begun, or has ended")
        client.ask("continue", threadId=thread)
        halt = client.event("stopped")
        self.assertEqual(halt["threadId"], 3)
        self.check_at(halt, "breakpoint", line_of("fadd rf4"))
        client.ask("stepOut", threadId=3)
        halt = client.event("stopped")
        self.assertEqual((halt["reason"], halt["threadId"]), ("step", 4))
        client.ask("setBreakpoints", source={"path": ADD}, breakpoints=[{"line": line_of("tmuwt")}])
        client.ask("continue", threadId=4)
        self.check_at(client.event("stopped"), "breakpoint", line_of("tmuwt"))
        client.ask("next", threadId=4)
        self.check_at(client.event("stopped"), "step", line_of("end  "))
        client.ask("next", threadId=4)  # eight words of one line, with which the last thread ends
        client.event("terminated")

    def test_faults_and_hangs_halt_where_they_are(self):
        client = self.client
        client.launch(buffers=["a=f32[16]"], uniforms=["0xf0000000", "a", "a"], threads=1)
        halt = client.event("stopped")
        self.check_at(halt, "exception", line_of("add tmua, rf10"))
        self.assertEqual(halt["text"], "an access to 0xf0000000, where no memory is mapped")
        client.ask("continue", threadId=halt["threadId"])
        self.assertEqual(client.event("exited"), {"exitCode": 1})
        self.assertIn("1 access to memory that is not mapped", client.output)

    def test_what_does_not_end_is_paused_and_left(self):
        client = self.client
        path = self.program("mov rf1, 0\nloop:\nb loop\nadd rf1, rf1, 1\nnop\nnop\n")
        client.launch(program=path, buffers=[])
        self.assertEqual(client.send("evaluate", expression="rf1", frameId=1)["message"], "the kernel runs")
        client.ask("pause", threadId=1)
        self.assertEqual(client.event("stopped")["reason"], "pause")
        client.ask("stepIn", threadId=1, granularity="instruction")
        self.assertEqual(client.event("stopped")["reason"], "step")
        client.ask("continue", threadId=1)
        client.ask("terminate")
        client.event("terminated")
        client.ask("disconnect")
        self.assertEqual(client.adapter.wait(timeout=PATIENCE), 0)

    def test_a_program_that_runs_off_its_end(self):
        client = self.client
        client.launch(program=self.program("mov rf1, 0\nldtmu.rf2\nend\n"), buffers=[], device="rpi4")
        halt = client.event("stopped")
        self.check_at(halt, "exception", 2)
        self.assertIn("Accumulators", self.scopes(halt["threadId"]))

    def test_what_cannot_be_is_refused(self):
        client = self.client
        client.ask("initialize")
        for wrong, message in (({"program": "/nowhere.qasm"}, "No such file"), ({}, "wrong arguments"), ({"program": ADD, "device": "rpi3"}, "no compute jobs"),
                               ({"program": ADD, "device": "rpi9"}, "no board rpi9"), ({"program": ADD, "buffers": 3}, "wrong arguments"),
                               ({"program": self.program("frobnicate\n")}, "frobnicate")):
            refused = client.send("launch", **wrong)
            self.assertFalse(refused["success"], wrong)
            self.assertIn(message, refused["message"])
        self.assertIn("launch comes first", client.send("threads")["message"])
        self.assertIn("no request", client.send("frobnicate")["message"])
        client.adapter.stdin.write(b"Content-Length: 99999999999\r\n\r\n")
        client.adapter.stdin.flush()
        self.assertEqual(client.adapter.wait(timeout=PATIENCE), 1)

    def test_more_than_an_editor_asks_for_is_refused(self):
        client = self.client
        client.launch(stopOnEntry=True)
        client.event("stopped")
        too_many = [{"line": 1}] * 5000
        self.assertIn("more than 4096 breakpoints", client.send("setBreakpoints", source={"path": ADD}, breakpoints=too_many)["message"])
        self.assertTrue(client.send("setBreakpoints", source={"path": ADD}, breakpoints=[{"line": 2**31 - 1}])["success"])
        for offset in (2**63 - 1, -2**63, 2**32, -2**31):
            self.assertIn("no such memory", client.send("readMemory", memoryReference="0x1000", offset=offset, count=4)["message"])
        # Functions that call themselves for what is nested would find the end of the stack.
        deep = b'{"seq":9,"type":"request","command":' + b"[" * 1000000 + b"]" * 1000000 + b"}"
        client.adapter.stdin.write(b"Content-Length: %d\r\n\r\n" % len(deep) + deep)
        client.adapter.stdin.flush()
        self.assertEqual(client.adapter.wait(timeout=PATIENCE), 1)

    def test_an_editor_that_leaves_while_a_run_ends(self):
        """What the kernel left is told then, or not."""
        for _ in range(8):
            client = Client()
            client.launch()
            client.send("disconnect")
            self.assertEqual(client.adapter.wait(timeout=PATIENCE), 0)
            client.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
