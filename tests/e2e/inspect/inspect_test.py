#!/usr/bin/env python3
"""v3demu inspect: histories of pixels beside memory, and a browser that walks through the page, beside replay --trace-qpu.

usage: inspect_test.py history V3DEMU MESA FOLDER DEVICE INSPECT_HISTORY PIXELS PROGRAM...
       inspect_test.py page V3DEMU MESA FOLDER DEVICE picture|compute|barrier PROGRAM...
       inspect_test.py against|hostile|export|absurd V3DEMU MESA FOLDER DEVICE PROGRAM...
       inspect_test.py program V3DEMU MESA FOLDER DEVICE PROGRAM...
PROGRAM's jobs are captured; "PICTURE" in it is a file of that name, and words NAME=VALUE in front of it are its environment,
those with --NAME=VALUE options of the capture. The page is skipped, with the reason, where Chromium, npm or its registry are not there.
"""
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from random import Random

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
NEED_WINDOWS = ("vkcube", "glmark2-es2")


def skip(reason):
    print("skipped: " + reason)
    sys.exit(SKIPPED)


def expect(condition, what, text=""):
    if not condition:
        sys.exit(f"{what}\n{str(text)[:4000]}")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    expect(done.returncode == 0, f"{command} ended with {done.returncode}", done.stdout[-2000:] + done.stderr[-2000:])
    return done.stdout


def capture(v3demu, mesa, folder, device, program):
    os.makedirs(folder, exist_ok=True)
    # What a file is called is text of others, too.
    path = os.path.join(folder, "<img src=x onerror=alert(1)>\"'&quot;.v3dcap")
    words = [word.replace("PICTURE", os.path.join(folder, "picture.ppm")) for word in program]
    first = next(n for n, word in enumerate(words) if "=" not in word)
    options = [word for word in words[:first] if word.startswith("--")]
    environment = [word for word in words[:first] if word not in options]
    command = ["env", *environment, v3demu, "capture", *options, "--device", device, "--mesa", mesa, "-o", path, "--", *words[first:]]
    if words[first] in NEED_WINDOWS:
        for name in words[first], "xvfb-run":
            if not shutil.which(name):
                skip(f"{name} is not installed")
        command = ["xvfb-run", "-a", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    expect(done.returncode == 0 and "GPU errors" not in done.stderr, f"{command} ended with {done.returncode}",
           done.stdout[-2000:] + done.stderr)
    return path


def history(v3demu, mesa, folder, device, check, pixels, *program):
    said = run([check, capture(v3demu, mesa, folder, device, program), pixels])
    print(said, end="")
    numbers = re.search(r"^(\d+) pixels, (\d+) compared, (\d+) with fragments, 0 wrong$", said, re.M)
    expect(numbers and int(numbers[1]) >= int(pixels), "too few pixels", said)
    expect(int(numbers[2]) >= int(pixels) // 2 and int(numbers[3]) > 0, "too little was compared", said)


def modules(folder):
    """A folder with playwright-core, which those beside it share; the registry is asked once for each version."""
    shared = os.path.join(os.path.dirname(os.path.abspath(folder)), "modules")
    os.makedirs(shared, exist_ok=True)
    with open(os.path.join(shared, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install(shared)
    link = os.path.join(folder, "node_modules")
    if not os.path.lexists(link):
        os.symlink(os.path.join(shared, "node_modules"), link)


def install(folder):
    with open(os.path.join(HERE, "package-lock.json"), encoding="utf-8") as file:
        wanted = file.read()
    stamp = os.path.join(folder, "installed")
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == wanted:
                return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, name), folder)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"], cwd=folder,
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        skip("npm ci failed, as without its registry: " + done.stderr[-300:])
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted)


def threads_of(trace):
    """The threads of a trace, each a list of (text, detail) of its instructions."""
    threads = []
    for text in trace.split("==== ")[1:]:
        paragraphs = re.split(r"\n\n(?= *\d+  0x)", text)[1:]
        # Behind the last instruction something else may follow.
        threads.append([(re.match(r" *\d+  0x\w{8}  (.*)", one)[1], one.partition("\n")[2].partition("\n\n")[0]) for one in paragraphs])
    return threads


def spaced(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


def lane_of(detail):
    """Registers that an instruction wrote, by the trace of one lane, with what the lane holds then."""
    return {name: value for name, value in re.findall(r"-> (r(?:[abf]?\d+))\S* +all +([0-9a-f]{8})$", detail, re.M)}


def compare_steps(walk, thread, lane_thread, lane):
    """Steps that the page showed, beside those of a trace; one lane of the registers beside the trace of that lane. How many values of
    registers were compared."""
    compared = 0
    expect(len(walk["steps"]) >= 2, "the page stepped through nothing", walk)
    for n, step in enumerate(walk["steps"] + walk["back"]):
        text, detail = thread[step["number"] - 1]
        expect(step["count"] == len(thread), "instructions of the thread", (step["count"], len(thread)))
        expect(step["text"].split() == text.split(), f"instruction {step['number']}", (step["text"], text))
        expect(spaced(step["detail"]) == spaced(detail), f"values of instruction {step['number']}", (step["detail"], detail))
        held = {name: lanes[lane] for name, _, lanes in step["registers"]}
        for name, value in lane_of(lane_thread[step["number"] - 1][1]).items():
            expect(held.get(name, "00000000") == value, f"{name} of lane {lane} after instruction {step['number']}", (held, detail))
            compared += 1
        # Of one step after the other the registers that differ are those that are marked.
        if 0 < n < len(walk["steps"]):
            before = {name: lanes for name, _, lanes in walk["steps"][n - 1]["registers"]}
            for name, marked, lanes in step["registers"]:
                expect(marked == (before[name] != lanes), f"the mark of {name} at instruction {step['number']}", (before[name], lanes))
    for n, back in enumerate(walk["back"]):
        expect(back == walk["steps"][-2 - n], "a step back", (back, walk["steps"][-2 - n]))
    return compared


def served(v3demu, *words):
    """A server, and its address, which comes behind what a program prints."""
    server = subprocess.Popen([v3demu, "inspect", "--no-browser", *words], stdout=subprocess.PIPE, text=True)
    for line in server.stdout:
        if re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", line.strip()):
            return server, line.strip()
    sys.exit(f"no address; the server ended with {server.wait(20)}")


def ask(address, question, **parameters):
    with urllib.request.urlopen(f"{address}ask/{question}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
        return json.load(answer)


def end(server):
    server.terminate()
    expect(server.wait(20) == 0, "inspect's end", server.returncode)


def program(v3demu, mesa, folder, device, *words):
    """inspect runs a program, shows its jobs, keeps its capture, and compares two captures."""
    need_page(v3demu)
    os.makedirs(folder, exist_ok=True)
    kept = os.path.join(folder, "kept.v3dcap")
    server, address = served(v3demu, "--device", device, "--mesa", mesa, "-o", kept, "--", *words)
    try:
        jobs = ask(address, "capture")["jobs"]
        compute = [job for job in jobs if job["kind"] == "compute"]
        expect(compute, "the program's jobs", jobs)
        code = re.search(r"program (0x[0-9a-f]{8})", compute[0]["summary"])[1]
        text = ask(address, "explain", job=compute[0]["number"], code=int(code, 16))
        expect("threads a QPU" in text["summary"] and len(text["instructions"]) > 5, "what it costs", text)
        try:
            ask(address, "steps", job=compute[0]["number"], stage="compute", patch="0x1004 nop")
            sys.exit("an edit at an address of no instruction is taken")
        except urllib.error.HTTPError as error:
            expect(error.code == 400 and b"no address of an instruction" in error.read(), "a wrong edit", error)
    finally:
        end(server)
    server, address = served(v3demu, "--against", kept, kept)
    try:
        expect(ask(address, "capture", other=1)["other"] == "kept.v3dcap", "the other capture")
        expect(ask(address, "job", job=1, other=1) == ask(address, "job", job=1), "the same job in both")
    finally:
        end(server)
    bad = subprocess.run([v3demu, "inspect", "--no-browser", "--device", device, "--mesa", mesa, "--", "false"], capture_output=True,
                         text=True, timeout=60, check=False)
    expect(bad.returncode == 1 and "did not use the GPU" in bad.stderr, "a program without jobs", bad.stderr)


def need_page(v3demu):
    prefix = os.path.dirname(os.path.dirname(v3demu))
    if not os.path.exists(os.path.join(prefix, "share", "v3demu", "inspect", "page.js")):
        skip("the build made no page, for want of npm or its registry")


def need_browser(v3demu, folder):
    for name in ("chromium", "npm", "node"):
        if not shutil.which(name):
            skip(name + " is not installed")
    need_page(v3demu)
    os.makedirs(folder, exist_ok=True)
    modules(folder)


def drive(script, folder, address, *arguments):
    """What one of the scripts saw at an address; no request went elsewhere. Its last argument is a screenshot's name."""
    for name in (script, "browser.mjs"):
        shutil.copy(os.path.join(HERE, name), folder)
    *arguments, screenshot = arguments
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:  # which a browser that ends may still write
        shown = json.loads(run(["node", os.path.join(folder, script), shutil.which("chromium"), profile, address, *arguments,
                                os.path.join(folder, screenshot)], cwd=folder))
    expect(shown["elsewhere"] == [], "requests to elsewhere", shown["elsewhere"])
    return shown


def browse(address, folder, scenario):
    return drive("page_test.mjs", folder, address, scenario, scenario + ".png")


def walk(v3demu, folder, scenario, *words):
    server, address = served(v3demu, *words)
    try:
        return browse(address, folder, scenario)
    finally:
        end(server)


def check_program(program):
    """Breakpoints and an edit, as breakAndEdit() saw them."""
    expect(program["stop"].startswith("4 of "), "the breakpoint", program["stop"])
    expect(program["never"] == "never from here on", "a value that never comes", program["never"])
    expect(program["wrong"] == "no register rf77", "a register that is not there", program["wrong"])
    expect("threads a QPU" in program["summary"] and "TMU: " in program["summary"], "what the program costs", program["summary"])
    expect("3f000000" in program["edited"] or "0.5" in program["edited"], "the edited instruction", program["edited"])


def check_profile(shown, profile):
    """The profile that the page shows, beside that of the command; the last row of the table was chosen."""
    expect(shown["jobs"] == len(profile["jobs"]), "jobs of the profile", shown)
    hottest = max(profile["shaders"], key=lambda shader: 4 * shader["instructions"] + sum(shader["stalls"]))
    expect(shown["instructions"] == len(hottest["at"]), "instructions of the hottest shader", shown)
    expect("on the board" in shown["cards"], "the figures on top", shown["cards"])
    expect(f"job={shown['number']}" in shown["hash"], "the address of the job that was chosen", shown)


def check_looks(looks, fragments):
    """Heat maps and the like, as lookAtPicture() saw them."""
    expect("at most" in looks["overdraw"], "the heat map", looks["overdraw"])
    expect(looks["centre"].strip() == str(fragments), "fragments of the pixel by map and history", (looks["centre"], fragments))
    expect("count" in looks["histogram"], "the histogram", looks["histogram"])
    expect(looks["before"] != looks["after"], "before and after the draw", looks["before"])
    expect("bound by" in looks["chip"] and "lookups" in looks["chip"], "the block diagram", looks["chip"])


def check_place(shown):
    """The pixel and its history, as debugPixel() saw them."""
    chosen = shown["chosen"]
    expect(shown["pixel"] == [chosen["x"], chosen["y"]], "the pixel that was picked", (shown["pixel"], chosen))
    expect(shown["events"][0] == "begin" and shown["events"][-1] == "store", "begin and end of the history", shown["events"])
    fragments = shown["fragments"]
    expect(fragments[chosen["fragment"]] == {"verdict": "writes", "changes": True}, "the fragment that was chosen", fragments)
    expect(all(one["verdict"] == "writes" for one in fragments if one["changes"]), "who changes the pixel", fragments)
    expect(shown["again"] == shown["walks"][-1]["back"][-1]["detail"], "the shared address", shown["again"])
    check_looks(shown["looks"], shown["events"].count("fragment"))
    return f"job={shown['job']},stage=fragment,pixel={chosen['x']}:{chosen['y']}"


def page(v3demu, mesa, folder, device, scenario, *program):
    need_browser(v3demu, folder)
    path = capture(v3demu, mesa, folder, device, program)
    shown = walk(v3demu, folder, scenario, path)
    expect(shown["title"] == os.path.basename(path), "the name of the capture", shown["title"])
    # Costs of programs of VideoCore IV are not known.
    errors = [error for error in shown["errors"] if device != "rpi3" or "501" not in error]
    expect(errors == [], "the page's errors", errors)
    selection = check_place(shown) if scenario == "picture" else f"job={shown['job']},stage=compute"
    if scenario == "compute":
        expect(shown["listing"] > 20, "the listing is short", shown)
        check_program(shown["program"])
        check_profile(shown["whole"], json.loads(run([v3demu, "profile", "--json", "-", path])))
        expect(shown["writer"].startswith(shown["address"]) and ("changed last by" in shown["writer"] or "first job" in shown["writer"]),
               "who wrote memory", shown["writer"])
    if scenario == "barrier":
        around = shown["walks"][-1]
        waits = any("waits at the barrier" in step["detail"] for step in around["steps"])
        expect(around["found"] and waits, "steps around a barrier", around)
    lane = shown["lane"]
    traces = [threads_of(run([v3demu, "replay", f"--trace-qpu={selection},instructions=5000{more}", path]))
              for more in ("", f",lanes={lane}-{lane},values=hex")]
    number = -1
    if scenario == "picture":
        # Several fragments of a pixel that share no sample may be in one thread.
        threads = sorted(set(shown["runs"]))
        expect(len(traces[0]) == len(threads), "threads of the pixel", (len(traces[0]), threads))
        number = threads.index(shown["thread"])
    compared = sum(compare_steps(one, traces[0][number], traces[1][number], lane) for one in shown["walks"])
    expect(compared >= 3, "few values of registers were compared", compared)
    print(f"{sum(len(one['steps']) for one in shown['walks'])} steps, {compared} values of registers in lane {lane}")


def edited(path, folder, code):
    """A copy of a capture in which two instructions of a program, given by their words, have changed places."""
    with open(path, "rb") as file:
        data = file.read()
    at = data.find(code)
    expect(at >= 0, "the program's words in the capture")
    changed = os.path.join(folder, "changed.v3dcap")
    with open(changed, "wb") as file:
        file.write(data[:at] + code[8:] + code[:8] + data[at + len(code):])
    return changed


def words_of(v3demu, path):
    """Words of the compute program of a capture: those of the first two instructions, which differ."""
    listing = run([v3demu, "decode", path])
    words = re.findall(r"^ +\S*  (?:0x)?([0-9a-f]{16})  ", listing, re.M)
    expect(len(words) > 1, "the listing has no words of programs", listing)
    first = next(n for n in range(len(words) - 1) if words[n] != words[n + 1])
    return b"".join(int(word, 16).to_bytes(8, "little") for word in words[first:first + 2])


def against(v3demu, mesa, folder, device, *program):
    """Two captures in the browser, in one of which two instructions have changed places."""
    need_browser(v3demu, folder)
    path = capture(v3demu, mesa, folder, device, program)
    changed = edited(path, folder, words_of(v3demu, path))
    shown = walk(v3demu, folder, "against", "--against", path, changed)
    expect(shown["errors"] == [], "the page's errors", shown["errors"])
    here, there = shown["here"], shown["there"]
    expect((here["title"], there["title"]) == (os.path.basename(changed), os.path.basename(path)), "the names of the captures", shown)
    expect(here["added"] and sorted(here["added"]) == sorted(here["removed"]), "what has another place here alone", shown)
    expect(there["added"] and sorted(there["added"]) == sorted(there["removed"]), "the same from the other side", shown)
    expect("other=1" in shown["hash"] and "view=program" in shown["hash"], "the place in the other capture", shown["hash"])


def hostile(v3demu, mesa, folder, device, *program):
    """Elements, scripts and quotes in all texts that are of others."""
    need_browser(v3demu, folder)
    shown = walk(v3demu, folder, "hostile", capture(v3demu, mesa, folder, device, program))
    # Refused edits, which the address has, are errors of questions.
    expect(all("400" in error for error in shown["errors"]), "the page's errors", shown["errors"])
    expect(shown["tab"] == "v3demu inspect" and shown["elements"] == 0, "a text ran, or is an element", shown)
    for view in shown["shown"]:
        expect(view["elements"] == 0 and view["isText"], "a text became an element, or is not shown", shown)


def export(v3demu, mesa, folder, device, *program):
    """The page of v3demu profile from a file: as it is written, and with hostile texts in it."""
    need_browser(v3demu, folder)
    path = capture(v3demu, mesa, folder, device, program)
    html = os.path.join(folder, "profile.html")
    profile = json.loads(run([v3demu, "profile", "--html", html, "--json", "-", path]))
    shown = browse("file://" + html, folder, "export")
    expect(shown["errors"] == [], "the page's errors", shown["errors"])
    check_profile(shown, profile)
    with open(html, encoding="utf-8") as file:
        text = file.read()
    inlined = re.search(r'(?<=id="profile">).*?(?=</script>)', text, re.S)[0]
    ran = "<img src=x onerror=\"document.title='ran'\"></script><script>document.title='ran'</script>"
    for shader in profile["shaders"]:
        shader["name"] += ran
        for instruction in shader["at"]:
            instruction["text"] += ran
    for one in profile["jobs"]:
        one.update(end="error" + ran, message=ran)
    profile.update(board=ran, description=ran, stalls=[name + ran for name in profile["stalls"]])
    for name, data in (("hostile.html", json.dumps(profile).replace("<", "\\u003c")), ("broken.html", inlined + "</script>" + ran)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text.replace(inlined, data))
    shown = browse("file://" + os.path.join(folder, "hostile.html"), folder, "export")
    expect(shown["errors"] == [] and shown["tab"] == "v3demu profile" and shown["elements"] == 0, "a text ran, or is an element", shown)
    # Even a script that stood there would not run: the policy knows one alone.
    shown = browse("file://" + os.path.join(folder, "broken.html"), folder, "export")
    expect(shown["tab"] == "v3demu profile" and any("Content Security Policy" in error for error in shown["errors"]), "the policy", shown)


def asked(address, side):
    """Asks everything of each job, whatever the answers are; how many there were."""
    answers = 0
    try:
        jobs = ask(address, "capture", other=side)["jobs"]
    except urllib.error.HTTPError:
        return 0
    for job in jobs[:4]:
        for question in ("job", "time", "listing", "picture", "heat", "history", "steps", "memory", "textures", "vertices", "profile"):
            parameters = {"job": job["number"], "other": side, "what": "fragments", "x": 1, "y": 1, "address": 0, "draw": 0, "draws": 1 << 31}
            try:
                with urllib.request.urlopen(f"{address}ask/{question}?{urllib.parse.urlencode(parameters)}", timeout=100) as answer:
                    answers += bool(answer.read())
            except urllib.error.HTTPError as error:
                expect(error.read(), "an answer without a reason", error)
    return answers


def absurd(v3demu, mesa, folder, device, *program):
    """Captures with sizes, counts and addresses that cannot be: each is refused with a message, or shown, in bounded memory."""
    need_page(v3demu)
    most = 3 << 30
    path = capture(v3demu, mesa, folder, device, program)
    with open(path, "rb") as file:
        whole = file.read()
    random = Random(1)
    refused = opened = largest = answers = 0
    for n in range(24):
        data = bytearray(whole)
        # Heads of records lie before the memory that they bring, hence most at the front.
        for _ in range(1 + n % 3):
            at = random.randrange(8, 256 if n % 2 else len(data) - 8) & ~3
            data[at:at + 4] = random.choice((b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x00\x00\x00\x40", b"\xf0\xff\xff\x00"))
        bad = os.path.join(folder, "absurd.v3dcap")
        with open(bad, "wb") as file:
            file.write(data)
        sides = ([bad], ["--against", bad, path])[n % 2]
        with subprocess.Popen([v3demu, "inspect", "--no-browser", *sides], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            address = server.stdout.readline().strip()
            if address:
                answers += asked(address, n % 2)
                with open(f"/proc/{server.pid}/status", encoding="utf-8") as file:
                    largest = max(largest, 1024 * int(re.search(r"VmHWM:\s*(\d+)", file.read())[1]))
                server.terminate()
            _, said = server.communicate(timeout=60)
        expect(server.returncode == (0 if address else 1), f"its end, case {n}", (server.returncode, said))
        expect(address or "v3demu inspect: " in said, f"why it is refused, case {n}", said)
        opened, refused = opened + bool(address), refused + (not address)
    print(f"{opened} opened, {refused} refused, {answers} answers, {largest >> 20} MiB at most")
    expect(opened and refused and answers > 100, "captures of one kind alone")
    expect(largest < most, "memory", largest)


def main():
    modes = {"history": history, "page": page, "program": program, "against": against, "hostile": hostile, "export": export, "absurd": absurd}
    modes[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
