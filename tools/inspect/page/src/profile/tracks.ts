// What the timeline shows: a track for frames, for each queue and what its jobs do, and for means over time.
import { dramBytes, frameName, isPredicted, kKinds, threads, timeOf } from "./model";
import type { Frame, Job, Profile } from "./model";

export interface Item {
  begin: number;
  end: number;
  text: string;
  job?: Job;
  frame?: Frame;
  span?: string; // the track that it is of, within the job
}
export interface Counter {
  unit: string;
  top: number;
  points: [number, number][]; // from when on it has which value
}
export interface Track {
  label: string;
  paint: string;
  height: number;
  isPart: boolean; // of the one above
  items: Item[];
  counter?: Counter;
}

/// Frames overlap: each is shown from the end of the client's one before.
function framesOf(profile: Profile): Item[] {
  const ended = new Map<number, number>();
  const items: Item[] = [];
  for (const frame of profile.frames) {
    const before = ended.get(frame.client) ?? 0;
    const begin = Math.max(frame.begin_ns, before);
    if (frame.end_ns > begin) items.push({ begin, end: frame.end_ns, frame, text: String(frame.number) });
    ended.set(frame.client, Math.max(frame.end_ns, before));
  }
  return items.sort((a, b) => a.begin - b.begin);
}

function counterOf(profile: Profile, label: string, unit: string, value: (job: Job) => number): Track[] {
  const steps: [number, number][] = [];
  for (const job of profile.jobs) if (timeOf(job) > 0 && isPredicted(job)) steps.push([job.begin_ns, value(job)], [job.end_ns, -value(job)]);
  steps.sort((a, b) => a[0] - b[0]);
  const points: [number, number][] = [];
  let now = 0;
  for (const [at, step] of steps) {
    now = Math.max(now + step, 0);
    const last = points.at(-1);
    if (last && last[0] === at) last[1] = now;
    else points.push([at, now]);
  }
  const top = points.reduce((most, [, one]) => Math.max(most, one), 0);
  return top > 0 ? [{ label, paint: "accent", height: 40, isPart: false, items: [], counter: { unit, top, points } }] : [];
}

export function tracksOf(profile: Profile): Track[] {
  const tracks: Track[] = [];
  const frames = framesOf(profile);
  if (frames.length > 0) tracks.push({ label: `${frameName(profile)}s`, paint: "faint", height: 18, isPart: false, items: frames });
  for (const kind of kKinds) {
    const jobs = profile.jobs.filter(isPredicted).filter((job) => job.kind === kind && timeOf(job) > 0);
    if (jobs.length === 0) continue;
    tracks.push({ label: kind, paint: kind, height: 26, isPart: false, items: jobs.map((job) => ({ begin: job.begin_ns, end: job.end_ns, job, text: String(job.number) })) });
    for (const span of new Set(jobs.flatMap((job) => Object.keys(job.spans)))) {
      const items = jobs.flatMap((job) =>
        (job.spans[span] ?? []).filter(([, begin, end]) => end > begin).map(([text, begin, end]): Item => ({
          begin: job.begin_ns + (begin * 1000) / job.clock_mhz, end: job.begin_ns + (end * 1000) / job.clock_mhz, job, span, text,
        })));
      items.sort((a, b) => a.begin - b.begin);
      if (items.length > 0) tracks.push({ label: span, paint: kind, height: 17, isPart: true, items });
    }
  }
  return [...tracks, ...counterOf(profile, "DRAM", " GB/s", (job) => dramBytes(job) / timeOf(job)), ...counterOf(profile, "threads per QPU", "", threads)];
}
