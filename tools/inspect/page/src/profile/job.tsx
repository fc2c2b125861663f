// What one job does to the units.
import { amount } from "../chip";
import { duration, hex } from "../text";
import { count, frameName, isPredicted, largest, percent, qpuClocks, stallText, sum, threads, timeOf } from "./model";
import type { Draw, Job, PredictedJob, Profile, Shader, ShaderUse } from "./model";
import { Bar, Table, stallPaint, timeParts } from "./table";
import type { Column } from "./table";

const kMeaning = new Map([
  ["issue", "QPUs have hardly a clock without an instruction, or wait for their own results"],
  ["TMU", "texture units have hardly a clock without a lookup"],
  ["L2T", "the cache that all share has hardly a free clock"],
  ["DRAM", "memory transfers nearly all the time"],
  ["vertex fetch", "the VCD reads attributes nearly all the time"],
  ["binner", "the PTB enters primitives in tile lists nearly all the time"],
  ["front end", "the FEP takes primitives apart into quads nearly all the time"],
  ["tile buffer", "the TLB tests and writes pixels, or loads and stores tiles, nearly all the time"],
  ["latency", "no unit is busy most of the time: threads wait for each other's ends, or there are too few"],
]);

const kTransfers = [
  ["L2T fills", "l2_read"], ["L2T writes", "l2_written"], ["tiles loaded", "tiles_loaded"], ["tiles stored", "tiles_stored"],
  ["tile lists written", "lists_written"], ["tile lists read", "lists_read"], ["read by the TFU", "tfu_read"], ["written by the TFU", "tfu_written"],
] as const;

function Share({ name, share, paint }: { name: string; share: number; paint: string }) {
  return <div class="share"><span>{name}</span><Bar parts={[[share, paint]]} /><span>{percent(share, 1)}</span></div>;
}

function Facts({ of }: { of: [string, string][] }) {
  return <dl>{of.map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>;
}

function Units({ profile, job }: { profile: Profile; job: PredictedJob }) {
  const slots = job.clocks * job.qpus;
  const { memory } = job;
  const hits = (good: number, bad: number) => (good + bad ? `${percent(good, good + bad)} of ${count(good + bad)}` : "-");
  return (
    <div class="columns">
      <div>
        <h3>Units</h3>
        <Share name="QPU" share={job.shares.qpu} paint="issue" />
        <Share name="TMU" share={job.shares.tmu} paint={stallPaint(0)} />
        <Share name="L2T" share={job.shares.l2} paint={stallPaint(3)} />
        <Share name="DRAM" share={job.shares.dram} paint={stallPaint(4)} />
        {Object.entries(job.units ?? {}).map(([name, share]) => share > 0 && <Share key={name} name={name} share={share} paint={job.kind} />)}
        <p class="faint">Bound by {job.bound}: {kMeaning.get(job.bound)}.</p>
      </div>
      <div>
        <h3>QPUs</h3>
        <Share name="issue" share={job.shares.issue} paint="issue" />
        {job.stalls.map((clocks, n) => clocks > 0 && <Share key={n} name={profile.stalls[n] ?? ""} share={clocks / slots} paint={stallPaint(n)} />)}
        <Share name="all wait" share={job.waiting / slots} paint="faint" />
        <p class="faint">{threads(job).toFixed(2)} threads on each of {job.qpus}; stalls are of threads that could go on but for that.</p>
      </div>
      <div>
        <h3>Memory</h3>
        <Facts of={[
          ["DRAM read", amount(memory.dram_read)], ["DRAM written", amount(memory.dram_written)],
          ...kTransfers.filter(([, key]) => memory[key] > 0).map(([name, key]): [string, string] => [`\u2003${name}`, amount(memory[key])]),
          ["L2T hits", hits(memory.l2_hits, memory.l2_misses)], ["TMU cache hits", hits(memory.tmu_hits, memory.tmu_misses)],
          ["code cache hits", hits(memory.code_hits, memory.code_misses)], ["page walks", count(memory.page_misses)],
        ]} />
      </div>
      <div>
        <h3>Job</h3>
        <Facts of={[
          ["on the GPU", `${duration(timeOf(job))}, ${count(job.clocks)} clocks`], ["with its submit", duration(timeOf(job) + job.submit_ns)], ["begins at", duration(job.begin_ns)],
          ["instructions", count(job.instructions)], ["lookups", count(job.lookups)],
          ...job.targets.map(({ address, width, height }): [string, string] => ["target", `${width}x${height} at ${hex(address)}`]),
        ]} />
      </div>
    </div>
  );
}

export function drawColumns(most: number): Column<Draw>[] {
  return [
    { title: "draw", text: (d) => d.number, key: (d) => d.number }, { title: "vertices", text: (d) => count(d.vertices), key: (d) => d.vertices },
    { title: "primitives", text: (d) => count(d.primitives), key: (d) => d.primitives }, { title: "quads", text: (d) => count(d.quads), key: (d) => d.quads },
    { title: "vertex batches", text: (d) => count(d.vertex_batches), key: (d) => d.vertex_batches },
    { title: "fragment batches", text: (d) => count(d.fragment_batches), key: (d) => d.fragment_batches }, { title: "QPU clocks", text: (d) => count(d.clocks), key: (d) => d.clocks },
    { title: "", left: true, text: (d) => <Bar parts={[[d.clocks / most, "render"]]} /> },
  ];
}

interface Props {
  profile: Profile;
  job: Job;
  chooseShader: (shader: Shader) => void;
  open: ((job: Job, draw?: number) => void) | undefined; // leads to the frame debugger
}

export function JobSection({ profile, job, chooseShader, open }: Props) {
  const whole = sum(job.shaders, qpuClocks);
  const columns: Column<ShaderUse>[] = [
    { title: "shader", left: true, text: (u) => profile.shaders[u.shader]?.name, key: (u) => profile.shaders[u.shader]?.name ?? "" },
    { title: "time", left: true, text: (u) => <Bar parts={timeParts(u, whole)} /> }, { title: "share", text: (u) => percent(qpuClocks(u), whole), key: qpuClocks },
    { title: "batches", text: (u) => count(u.batches), key: (u) => u.batches }, { title: "instructions", text: (u) => count(u.instructions), key: (u) => u.instructions },
    { title: "stalls", left: true, text: (u) => stallText(profile, u) },
  ];
  return (
    <section id="profile-job">
      <h2>
        <Kind of={job} /> Job {job.number} <span class="faint">client {job.client}{job.submission ? `, submission ${job.submission}` : ""}{job.frame ? `, ${frameName(profile)} ${job.frame}` : ""}</span>{" "}
        {job.end !== "done" && <span class="bad">{job.end}: {job.message}</span>} {open && <button onClick={() => open(job)}>look into it</button>}
      </h2>
      {isPredicted(job) ? <Units profile={profile} job={job} /> : <p class="faint">No prediction: {job.no_prediction}</p>}
      {job.shaders.length > 0 && <><h3>Its shaders</h3><Table name="uses" key={`uses ${job.number}`} columns={columns} rows={job.shaders} by={2} click={(use) => chooseShader(profile.shaders[use.shader]!)} /></>}
      {job.draws.length > 0 && <><h3>Its draws</h3><Table name="job-draws" key={`draws ${job.number}`} columns={drawColumns(largest(job.draws, (d) => d.clocks))} rows={job.draws} click={open && ((draw: Draw) => open(job, draw.number))} /></>}
    </section>
  );
}

export function Kind({ of }: { of: Job }) {
  return <span class={`kind ${of.kind}`}>{of.kind}</span>;
}
