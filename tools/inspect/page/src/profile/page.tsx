// Where the time of a whole capture goes on the board: within the frame debugger, and as a page that needs nothing else.
import { useMemo, useRef, useState } from "preact/hooks";
import { amount } from "../chip";
import { duration } from "../text";
import { JobSection, Kind, drawColumns } from "./job";
import { count, dramBytes, frameName, isPredicted, kKinds, largest, percent, qpuClocks, stallText, sum, threads, timeOf } from "./model";
import type { Draw, Frame, Job, Profile, Shader } from "./model";
import { Bar, Legend, Table, stallPaint, timeParts } from "./table";
import type { Column } from "./table";
import { ProfileTimeline } from "./timeline";

function Cards({ profile }: { profile: Profile }) {
  const predicted = profile.jobs.filter(isPredicted);
  const busy = sum(predicted, timeOf);
  const slots = sum(predicted, (job) => job.clocks * job.qpus);
  const dram = sum(predicted, dramBytes);
  const bounds = new Map<string, number>();
  for (const job of predicted) bounds.set(job.bound, (bounds.get(job.bound) ?? 0) + timeOf(job));
  const most = [...bounds].sort((a, b) => b[1] - a[1]);
  const frames = profile.frames.length;
  const cards: [string, string][] = [[duration(profile.end_ns), "on the board, all queues together"]];
  if (frames > 0) cards.push([duration(Math.round(profile.end_ns / frames)), `each of ${count(frames)} ${frameName(profile)}s, ${((1e9 * frames) / (profile.end_ns || 1)).toFixed(1)} a second at most`]);
  cards.push([count(profile.jobs.length), `jobs, ${count(profile.jobs.length - predicted.length)} of them without prediction`]);
  if (most[0]) {
    cards.push([most[0][0], `bounds most: ${most.map(([name, ns]) => `${name} ${percent(ns, busy)}`).join(", ")}`]);
    cards.push([percent(sum(predicted, (job) => 4 * job.instructions), slots), `of the QPUs' clocks issue; ${(sum(predicted, (job) => job.resident) / slots).toFixed(2)} threads on each`]);
    cards.push([amount(dram), `to and from DRAM, ${(dram / (busy || 1)).toFixed(2)} GB/s while jobs run`]);
  }
  return <div class="cards">{cards.map(([large, small]) => <div key={small}><b>{large}</b><span class="faint">{small}</span></div>)}</div>;
}

function frameColumns(profile: Profile): Column<Frame>[] {
  const length = (frame: Frame) => frame.end_ns - frame.begin_ns;
  const slowest = largest(profile.frames, length);
  return [
    { title: frameName(profile), text: (f) => f.number, key: (f) => f.number }, { title: "client", text: (f) => f.client, key: (f) => f.client }, { title: "jobs", text: (f) => f.jobs, key: (f) => f.jobs },
    { title: "begins at", text: (f) => duration(f.begin_ns), key: (f) => f.begin_ns }, { title: "begin to end", text: (f) => duration(length(f)), key: length },
    { title: "", left: true, text: (f) => <Bar parts={kKinds.map((kind) => [f.busy_ns[kind] / slowest, kind])} /> },
    ...kKinds.map((kind): Column<Frame> => ({ title: kind, text: (f) => (f.busy_ns[kind] ? duration(f.busy_ns[kind]) : ""), key: (f) => f.busy_ns[kind] })),
    { title: "DRAM", text: (f) => amount(f.dram_bytes), key: (f) => f.dram_bytes },
  ];
}

function jobColumns(profile: Profile): Column<Job>[] {
  const longest = largest(profile.jobs, timeOf);
  const share = (title: string, name: "qpu" | "tmu" | "l2" | "dram"): Column<Job> =>
    ({ title, text: (j) => (isPredicted(j) ? percent(j.shares[name], 1) : ""), key: (j) => (isPredicted(j) ? j.shares[name] : -1) });
  return [
    { title: "job", text: (j) => j.number, key: (j) => j.number }, { title: "queue", left: true, text: (j) => <Kind of={j} />, key: (j) => j.kind },
    { title: "client", text: (j) => j.client, key: (j) => j.client }, { title: frameName(profile), text: (j) => j.frame || "", key: (j) => j.frame },
    { title: "time", text: (j) => (isPredicted(j) ? duration(timeOf(j)) : "-"), key: timeOf }, { title: "", left: true, text: (j) => <Bar parts={[[timeOf(j) / longest, j.kind]]} /> },
    { title: "bound by", left: true, text: (j) => (isPredicted(j) ? j.bound : j.no_prediction), key: (j) => (isPredicted(j) ? j.bound : "") },
    share("QPU", "qpu"), share("TMU", "tmu"), share("L2T", "l2"), share("DRAM", "dram"),
    { title: "threads", text: (j) => (isPredicted(j) ? threads(j).toFixed(2) : ""), key: threads }, { title: "DRAM bytes", text: (j) => (isPredicted(j) ? amount(dramBytes(j)) : ""), key: dramBytes },
    { title: "instructions", text: (j) => (isPredicted(j) ? count(j.instructions) : ""), key: (j) => (isPredicted(j) ? j.instructions : 0) }, { title: "end", left: true, text: (j) => j.end, key: (j) => j.end },
  ];
}

function shaderColumns(profile: Profile, whole: number): Column<Shader>[] {
  const most = largest(profile.shaders, qpuClocks);
  return [
    { title: "shader", left: true, text: (s) => <code>{s.name}</code>, key: (s) => s.name }, { title: "time", left: true, text: (s) => <Bar parts={timeParts(s, most)} /> },
    { title: "share", text: (s) => percent(qpuClocks(s), whole), key: qpuClocks }, { title: "jobs", text: (s) => count(s.jobs), key: (s) => s.jobs },
    { title: "batches", text: (s) => count(s.batches), key: (s) => s.batches }, { title: "instructions", text: (s) => count(s.instructions), key: (s) => s.instructions },
    { title: "words", text: (s) => s.at.length, key: (s) => s.at.length }, { title: "stalls", left: true, text: (s) => stallText(profile, s) },
  ];
}

/// A shader with its time by instruction: the warmer, the farther above the mean.
function Annotated({ profile, shader, whole }: { profile: Profile; shader: Shader; whole: number }) {
  const own = qpuClocks(shader);
  const most = largest(shader.at, qpuClocks);
  const mean = own / Math.max(shader.at.length, 1) || 1;
  return (
    <>
      <h3>{shader.name}: {count(shader.at.length)} instructions, {percent(own, whole)} of the QPUs' clocks</h3>
      <div class="bar"><Legend entries={[["issue", "issue"], ...profile.stalls.flatMap((name, n): [string, string][] => (profile.shaders.some((one) => one.stalls[n]) ? [[name, stallPaint(n)]] : []))]} /></div>
      <div class="scroll annotated">
        <table class="rows numbers" id="annotated">
          <thead><tr><th /><th>time</th><th /><th>times</th><th class="left">instruction</th><th class="left">stalls, of its time</th></tr></thead>
          <tbody>
            {shader.at.map((one, n) => {
              const clocks = qpuClocks(one);
              const heat = 40 * Math.min(clocks / mean / 5, 1) ** 1.5;
              return (
                <tr key={n} class={one.issued ? "" : "faint"} style={{ background: `color-mix(in srgb, var(--bad) ${heat.toFixed(1)}%, transparent)` }}>
                  <td>{n}</td><td>{clocks ? percent(clocks, own) : ""}</td><td><Bar parts={timeParts(one, most)} /></td><td>{one.issued ? count(one.issued) : ""}</td>
                  <td class="text">{one.text}</td><td class="left">{stallText(profile, one)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface Props {
  profile: Profile;
  job: number | undefined; // undefined: the one that takes longest
  choose: (job: Job) => void;
  open?: (job: Job, draw?: number) => void;
}

export function ProfilePage({ profile, job: number, choose, open }: Props) {
  const show = useRef<((from: number, to: number) => void) | null>(null);
  const slowest = useMemo(() => [...profile.jobs].sort((a, b) => timeOf(b) - timeOf(a))[0], [profile]);
  const hottest = useMemo(() => [...profile.shaders].sort((a, b) => qpuClocks(b) - qpuClocks(a))[0], [profile]);
  const [shader = hottest, setShader] = useState<Shader>();
  const job = number === undefined ? slowest : profile.jobs.find((one) => one.number === number);
  const draws = useMemo(() => profile.jobs.flatMap((one) => one.draws.map((draw): Draw & { job: Job } => ({ job: one, ...draw }))), [profile]);
  const columns = useMemo(() => ({ frames: frameColumns(profile), jobs: jobColumns(profile) }), [profile]);
  const whole = sum(profile.shaders, qpuClocks);
  const chooseShader = (one: Shader) => {
    setShader(one);
    document.getElementById("profile-shaders")?.scrollIntoView();
  };
  const chooseJob = (one: Job) => {
    choose(one);
    document.getElementById("profile-job")?.scrollIntoView();
  };
  return (
    <div class="profile">
      <Cards profile={profile} />
      <ProfileTimeline profile={profile} chosen={job} choose={choose} shown={show} />
      {job && <JobSection profile={profile} job={job} chooseShader={chooseShader} open={open} />}
      {profile.frames.length > 0 && (
        <section>
          <h2>Frames</h2>
          <p class="faint">{profile.frames_by === "submission" ? "Each submission with a render job." : "Told by what they draw to: an image of the size and format of a frame's first one begins the next."}</p>
          <Table name="frames" columns={columns.frames} rows={profile.frames} click={(frame) => show.current?.(frame.begin_ns, frame.end_ns)} />
        </section>
      )}
      <section><h2>Jobs</h2><Table name="jobs" columns={columns.jobs} rows={profile.jobs} by={4} click={chooseJob} chosen={job} /></section>
      {draws.length > 0 && (
        <section>
          <h2>Draws</h2>
          <Table name="draws" rows={draws} by={8} click={(draw) => chooseJob(draw.job)}
            columns={[{ title: "job", text: (d) => d.job.number, key: (d) => d.job.number }, { title: "queue", left: true, text: (d) => <Kind of={d.job} />, key: (d) => d.job.kind },
              ...(drawColumns(largest(draws, (d) => d.clocks)) as Column<Draw & { job: Job }>[])]} />
        </section>
      )}
      {shader && (
        <section id="profile-shaders">
          <h2>Shaders</h2>
          <p class="faint">Clocks of QPUs: issue, and stalls of the threads that run.</p>
          <Table name="shaders" columns={shaderColumns(profile, whole)} rows={profile.shaders} by={2} click={setShader} chosen={shader} />
          <Annotated profile={profile} shader={shader} whole={whole} />
        </section>
      )}
    </div>
  );
}
