// What a program's jobs would take on the board, as `v3demu profile --json` writes it (tools/cli/profiling/json.cc), and what follows from it.

export const kKinds = ["bin", "render", "compute", "tfu"] as const;
export type Kind = (typeof kKinds)[number];

/// Of QPUs: what issues, and what threads wait for.
interface Cost {
  instructions: number;
  stalls: number[];
}
export interface Instruction {
  text: string;
  issued: number;
  stalls: number[];
}
export interface ShaderUse extends Cost {
  shader: number; // in Profile.shaders
  batches: number;
}
export interface Shader extends Cost {
  name: string;
  stage: string;
  jobs: number;
  batches: number;
  at: Instruction[];
}
export interface Draw {
  number: number;
  vertices: number;
  primitives: number;
  quads: number;
  vertex_batches: number;
  fragment_batches: number;
  clocks: number;
}
export interface Job {
  number: number;
  kind: Kind;
  client: number;
  submission: number;
  frame: number;
  end: string;
  message?: string;
  begin_ns: number;
  end_ns: number;
  no_prediction?: string;
  targets: { address: number; width: number; height: number }[];
  shaders: ShaderUse[];
  draws: Draw[];
  spans: Record<string, [string, number, number][]>; // by track: name, begin and end in clocks of the job
}
export type Share = "issue" | "qpu" | "tmu" | "l2" | "dram";
export interface PredictedJob extends Job, Cost {
  submit_ns: number;
  clocks: number;
  clock_mhz: number;
  bound: string;
  shares: Record<Share, number>;
  units?: Record<string, number>;
  qpus: number;
  waiting: number;
  resident: number;
  lookups: number;
  memory: Record<
    | "dram_read" | "dram_written" | "l2_read" | "l2_written" | "lists_read" | "lists_written" | "tiles_loaded" | "tiles_stored" | "tfu_read"
    | "tfu_written" | "l2_hits" | "l2_misses" | "tmu_hits" | "tmu_misses" | "code_hits" | "code_misses" | "page_misses", number>;
}
export interface Frame {
  number: number;
  client: number;
  jobs: number;
  begin_ns: number;
  end_ns: number;
  busy_ns: Record<Kind, number>;
  dram_bytes: number;
}
export interface Profile {
  board: string;
  description: string;
  end_ns: number;
  frames_by: "submission" | "targets";
  stalls: string[]; // their names
  frames: Frame[];
  jobs: Job[];
  shaders: Shader[];
}

export const isPredicted = (job: Job): job is PredictedJob => "clocks" in job;
export const sum = <T>(list: readonly T[], value: (one: T) => number) => list.reduce((all, one) => all + value(one), 0);
/// At least 1, to divide by.
export const largest = <T>(list: readonly T[], value: (one: T) => number) => list.reduce((most, one) => Math.max(most, value(one)), 1);
export const timeOf = (job: Job) => job.end_ns - job.begin_ns;
export const dramBytes = (job: Job) => (isPredicted(job) ? job.memory.dram_read + job.memory.dram_written : 0);
export const threads = (job: Job) => (isPredicted(job) && job.clocks > 0 ? job.resident / (job.clocks * job.qpus) : 0);
export const frameName = (profile: Profile) => (profile.frames_by === "submission" ? "submission" : "frame");

/// An instruction takes four clocks.
export const issueClocks = (cost: Cost | Instruction) => 4 * ("issued" in cost ? cost.issued : cost.instructions);
export const qpuClocks = (cost: Cost | Instruction) => issueClocks(cost) + sum(cost.stalls, (clocks) => clocks);

export const percent = (part: number, whole: number) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "-");
export const count = (number: number) => Math.round(number).toLocaleString("en").replace(/,/g, "\u202f");

export function stallText(profile: Profile, cost: Cost | Instruction): string {
  const whole = qpuClocks(cost);
  return cost.stalls.flatMap((clocks, n) => (clocks ? [`${profile.stalls[n]} ${percent(clocks, whole)}`] : [])).join(", ");
}
