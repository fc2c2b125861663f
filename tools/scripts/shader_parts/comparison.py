"""Two runs of v3demu shader-db beside each other, as shader-db's report.py tells it."""
import math
import statistics

# What is told of, in this order: what Mesa counts, in its words and order (v3d_shaderdb_dump()), and behind it what the model predicts.
MEASURES = ("inst", "threads", "loops", "uniforms", "max-temps", "spills", "fills", "sfu-stalls", "inst-and-stalls", "nops", "clocks", "hazards",
            "occupancy")
# Where results have other names.
KEYS = {"inst": "instructions", "max-temps": "max_temps", "sfu-stalls": "sfu_stalls", "inst-and-stalls": "inst_and_stalls", "clocks": "clocks_per_batch"}
MORE_IS_BETTER = {"threads", "occupancy"}  # of the others less is
CONFIDENCE = 0.95


def figures_by_shader(run):
    """{(file, stage): {measure: number}} of a run."""
    found = {}
    for file in run["files"]:
        for shader in file.get("shaders", []):
            figures = {name: shader.get(KEYS.get(name, name)) for name in MEASURES} | {"hazards": sum(shader["hazards"].values())}
            figures |= {f"{name}-stalls": clocks for name, clocks in shader["stalls"].items() if clocks}
            found[file["file"], shader["stage"]] = {name: value for name, value in figures.items() if value is not None}
    return found


def quantile_of_t(probability, freedom):
    """Student's, from the normal one by Cornish and Fisher's expansion."""
    z = statistics.NormalDist().inv_cdf(probability)
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


def interval(values):
    """Of the mean, with a confidence of 95 %."""
    half = quantile_of_t((1 + CONFIDENCE) / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) - half, statistics.mean(values) + half


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def percent(before, after):
    return f"{100 * (after - before) / before:+.2f}%" if before else "0.00%" if before == after else "inf"


def _spread(name, values, unit=""):
    return (f"{name} min: {number(min(values))}{unit} max: {number(max(values))}{unit} "
            f"x\u0304: {number(float(statistics.mean(values)))}{unit} x\u0303: {number(float(statistics.median(values)))}{unit}")


def _relative(before, after):
    """The change in percent."""
    return 100 * (after - before) / before if before else 100.0


def _stats(name, pairs):
    changes = [abs(after - before) for before, after in pairs]
    return [_spread(f"{name} stats (abs)", changes), _spread(f"{name} stats (rel)", [abs(_relative(*pair)) for pair in pairs], "%")]


def _verdict(measure, pairs):
    """The means' intervals, and what they say."""
    changes = [after - before for before, after in pairs]
    lines, low_high = [], []
    for what, values in (("value", changes), ("%-change", [_relative(*pair) for pair in pairs])):
        low, high = interval(values)
        low_high.append((low, high))
        lines.append(f"{CONFIDENCE:.0%} mean confidence interval for {measure} {what}: {low:.2f}{'%' * (what != 'value')} {high:.2f}{'%' * (what != 'value')}")
    if all(high < 0 for _, high in low_high):
        lines.append(f"{measure.capitalize()} are {'HURT' if measure in MORE_IS_BETTER else 'helped'}.")
    elif all(low > 0 for low, _ in low_high):
        lines.append(f"{measure.capitalize()} are {'helped' if measure in MORE_IS_BETTER else 'HURT'}.")
    else:
        lines.append(f"Inconclusive result ({'value mean confidence interval' if low_high[0][0] <= 0 <= low_high[0][1] else '%-change mean confidence interval'} includes 0).")
    return lines


def _of_measure(measure, shared, before, after):
    pairs = [(before[key].get(measure, 0), after[key].get(measure, 0)) for key in shared if measure in before[key] or measure in after[key]]
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    if not pairs:
        return []
    sums = [sum(side) for side in zip(*pairs)]
    lines = [f"total {measure} in shared programs: {number(sums[0])} -> {number(sums[1])} ({percent(*sums)})"]
    if not changed:
        return lines
    sums = [sum(side) for side in zip(*changed)]
    lines.append(f"{measure} in affected programs: {number(sums[0])} -> {number(sums[1])} ({percent(*sums)})")
    better, worse = [], []
    for pair in changed:
        (better if (pair[1] > pair[0]) == (measure in MORE_IS_BETTER) else worse).append(pair)
    lines += [f"helped: {len(better)}", f"HURT: {len(worse)}"]
    for name, some in (("helped", better), ("HURT", worse)):
        lines += _stats(name, some) if some else []
    return lines + (_verdict(measure, changed) if len(changed) > 3 else [])


def changed_shaders(before, after):
    """(clocks before, after, file, stage) of those whose predicted time changed, the greatest change first."""
    rows = [(before[key]["clocks"], after[key]["clocks"], *key) for key in before if key in after and before[key]["clocks"] != after[key]["clocks"]]
    return sorted(rows, key=lambda row: (-abs(row[1] / row[0] - 1), row[2:]))


def changed_code(old, new):
    """([(file, stage) of those with other code], of how many); runs of former versions did not keep what tells."""
    hashes = [{(file["file"], shader["stage"]): shader["code_hash"] for file in run["files"] for shader in file.get("shaders", [])
               if "code_hash" in shader} for run in (old, new)]
    shared = [key for key in hashes[0] if key in hashes[1]]
    return [key for key in shared if hashes[0][key] != hashes[1][key]], len(shared)


def _of_code(old, new, shown):
    changed, total = changed_code(old, new)
    if not changed:
        return [f"code: the same in all {total} shared programs"] if total else []
    rest = [f"  {len(changed) - shown} more"] if len(changed) > shown else []
    lines = [f"code: other in {len(changed)} of {total} shared programs; v3demu shader --diff shows it"]
    return ["\n".join([*lines, *(f"  {file} - {stage}" for file, stage in changed[:shown]), *rest])]


def report(old, new, shown=20):
    """All of it as text."""
    before, after = figures_by_shader(old), figures_by_shader(new)
    shared = [key for key in before if key in after]
    measures = [*MEASURES, *sorted({name for figures in (*before.values(), *after.values()) for name in figures} - set(MEASURES))]
    blocks = [told for measure in measures if (told := "\n".join(_of_measure(measure, shared, before, after)))]
    rows = changed_shaders(before, after)
    if rows:
        lines = [f"predicted clocks for 16 lanes, of the {min(shown, len(rows))} shaders of {len(rows)} that changed most:"]
        lines += [f"  {number(a):>10} -> {number(b):>10} {percent(a, b):>9}  {file} - {stage}" for a, b, file, stage in rows[:shown]]
        blocks.append("\n".join(lines))
    blocks += _of_code(old, new, shown)
    lost, gained = [key for key in before if key not in after], [key for key in after if key not in before]
    lines = [f"LOST:   {len(lost)}", *(f"  {file} - {stage}" for file, stage in lost)]
    lines += [f"GAINED: {len(gained)}", *(f"  {file} - {stage}" for file, stage in gained)]
    return "\n\n".join([*blocks, "\n".join(lines)])
