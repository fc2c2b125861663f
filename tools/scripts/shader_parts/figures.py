"""What is known of a compiled shader: what Mesa's compiler says, and what the timing model does."""
import difflib
import re

FORMAT = "v3demu shader 2"
# v3d_shaderdb_dump() of Mesa.
TOLD = re.compile(
    r"MESA_SHADER_(\w+)[^:]* shader: (?P<instructions>\d+) inst, (?P<threads>\d+) threads, (?P<loops>\d+) loops, "
    r"(?P<uniforms>\d+) uniforms, (?P<max_temps>\d+) max-temps, (?P<spills>\d+):(?P<fills>\d+) spills:fills, "
    r"(?P<sfu_stalls>\d+) sfu-stalls, (?P<inst_and_stalls>\d+) inst-and-stalls, (?P<nops>\d+) nops")
# Mesa's names of stages by the profile's.
STAGES = {"vertex": ("VERTEX",), "coordinate": ("COORD", "VERTEX_BIN"), "fragment": ("FRAGMENT",), "compute": ("COMPUTE",)}
WANTED = {"vertex": ("coordinate", "vertex"), "fragment": ("fragment",), "compute": ("compute",)}
SHOWN = ("instructions", "threads", "uniforms", "max_temps", "spills", "fills", "loops", "sfu_stalls", "nops", "clocks_per_batch")


def told_by_mesa(log):
    """The compiler's last word on each stage, by its name there."""
    return {match[1]: {name: int(value) for name, value in match.groupdict().items()} for match in TOLD.finditer(log)}


def occupancy(job):
    """Threads that each QPU has, in the mean of the job's time."""
    return round(job["resident"] / max(1, job["clocks"] * job["qpus"]), 3)


def qpu_clocks(part):
    return 4 * part["instructions"] + sum(part["stalls"])


def figures_of(profile, log, kind):
    """Of each program that the shader became; the vertex stage has one for binning as well."""
    told, found = told_by_mesa(log), []
    for stage in WANTED[kind]:
        of_stage = [shader for shader in profile["shaders"] if shader["stage"] == stage]
        if not of_stage:
            continue
        shader = max(of_stage, key=qpu_clocks)
        clocks = qpu_clocks(shader)
        parts = {"issue": 4 * shader["instructions"]} | dict(zip(profile["stalls"], shader["stalls"]))
        index = profile["shaders"].index(shader)
        jobs = [job for job in profile["jobs"] if "clocks" in job and any(use["shader"] == index for use in job["shaders"])]
        mesa = next((told[name] for name in STAGES[stage] if name in told), {})
        found.append({
            "stage": stage, **mesa, "batches": shader["batches"], "clocks_per_batch": round(clocks / max(1, shader["batches"]), 2),
            "bound": max(parts, key=parts.get), "shares": {name: round(value / max(1, clocks), 4) for name, value in parts.items() if value},
            "stalls": {name: round(value / max(1, shader["batches"]), 2) for name, value in zip(profile["stalls"], shader["stalls"])},
            "job_bound": jobs[0]["bound"] if jobs else None, "occupancy": max(map(occupancy, jobs), default=None),
            "code": [{"text": one["text"], "issued": one["issued"], "stalls": one["stalls"]} for one in shader["at"]]})
    return found


def named(name):
    return name.replace("_", " ")


def text_of(result):
    lines = [f"{result['file']} on {result['board']}"]
    for shader in result["shaders"]:
        lines += ["", f"{shader['stage']}: " + ", ".join(f"{shader[name]} {named(name)}" for name in SHOWN[:-1] if name in shader)]
        shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shader["shares"].items())
        lines.append(f"predicted: {shader['clocks_per_batch']:.2f} clocks of a QPU for 16 lanes ({shares}); bound by {shader['bound']}"
                     + (f", its job by {shader['job_bound']}, with {shader['occupancy']:.2f} threads on each QPU" if shader["job_bound"] else ""))
        if shader.get("hazards"):
            lines.append("broken rules of scheduling: " + ", ".join(f"{rule} {count}" for rule, count in shader["hazards"].items()))
        lines.append(f"  {'clocks':>8} {'stalls':>8}")
        batches = max(1, shader["batches"])
        lines += [f"  {4 * one['issued'] / batches:8.2f} {sum(one['stalls']) / batches:8.2f}  {one['text']}" for one in shader["code"]]
    lines += [f"\n{stage}: not timed, as nothing of the draw is seen" for stage in result["untimed"]]
    return "\n".join(lines)


def diff_of(old, new):
    """The figures that changed, and the code, from one result to another."""
    lines = [f"{old['file']} -> {new['file']} on {new['board']}"]
    before = {shader["stage"]: shader for shader in old["shaders"]}
    for shader in new["shaders"]:
        other = before.get(shader["stage"])
        if not other:
            lines.append(f"\n{shader['stage']}: only in the new one")
            continue
        lines.append(f"\n{shader['stage']}")
        for name in SHOWN:
            a, b = other.get(name), shader.get(name)
            if a is None or b is None:
                continue
            change = f" ({100 * (b - a) / a:+.2f} %)" if a != b and a else ""
            lines.append(f"  {named(name):18} {a:>10} {b:>10}{change}" if a != b else f"  {named(name):18} {a:>10}       same")
        if other["bound"] != shader["bound"]:
            lines.append(f"  bound by {other['bound']}, now by {shader['bound']}")
        code = [[one["text"] for one in side["code"]] for side in (other, shader)]
        lines += ["  " + line for line in difflib.unified_diff(*code, "old", "new", lineterm="", n=2)]
    lines += [f"\n{stage}: only in the old one" for stage in before if stage not in {shader["stage"] for shader in new["shaders"]}]
    return "\n".join(lines)
