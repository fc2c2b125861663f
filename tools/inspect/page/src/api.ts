// What the server answers; tools/inspect/answers.cc makes it.

export interface Job {
  number: number;
  kind: "bin" | "render" | "compute" | "tfu" | "user";
  client: number;
  submission: number;
  summary: string;
}
export interface Capture {
  file: string;
  board: string;
  description: string;
  other: string | null; // the file that it is compared with
  jobs: Job[];
}
export interface Draw {
  number: number;
  mode: string;
  count: number;
  instances: number;
  indexed: boolean;
  vertices: number;
  primitives: number;
  entries: number;
  programs: { stage: string; code: string }[];
  state: string[];
}
export interface Draws {
  draws: Draw[];
  left_out: number;
}
export interface ProgramTime {
  stage: string;
  code: string;
  batches: number;
  instructions: number;
  stalled: number;
  at: [number, number][];
}
export interface Units {
  clocks: number;
  qpus: number;
  // Shares of the job's time in which they have work.
  issue: number;
  qpu: number;
  tmu: number;
  l2: number;
  dram: number;
  fetch: number;
  binner: number;
  front_end: number;
  tlb: number;
  load_store: number;
  threads: number; // in the mean, of all QPUs
  instructions: number;
  lookups: number;
  l1_hits: number;
  l1_misses: number;
  l2_hits: number;
  l2_misses: number;
  read_bytes: number;
  written_bytes: number;
  lists_written: number;
  lists_read: number;
  tile_loaded: number;
  tile_stored: number;
  transferred: number;
}
export interface Time {
  busy?: boolean; // others came first: nothing else is known, and it is to be asked again
  units?: Units;
  end: string;
  why_not?: string;
  ns?: number;
  bound?: string;
  draws?: { clocks: number; quads: number; vertices: number }[];
  programs?: ProgramTime[];
}
export interface Frame {
  width: number;
  height: number;
  tile_width: number;
  tile_height: number;
  samples: number;
  layers: number;
  depth_type: string;
  targets: { target: number; type: string; bits: number }[];
  problem?: string;
}
export interface Sample {
  depth: number | null;
  stored_depth: number;
  stencil: number;
  colors: { target: number; rgba8: number; channels: (number | null)[]; words: number[] }[];
}
export interface Access {
  kind: "color" | "depth";
  target: number;
  words: number[];
  written: (number | null)[];
  passed: number;
  before: Sample;
  after: Sample;
}
export interface Run {
  thread: number;
  lane: number;
  sample: number;
  alive: number;
  accesses: Access[];
}
export interface PixelEvent {
  kind: "begin" | "load" | "clear" | "store" | "fragment";
  before: Sample;
  after: Sample;
  buffer?: number;
  address?: string;
  draw?: number;
  primitive?: number;
  back_facing?: boolean;
  coverage?: number;
  depth?: number;
  tests_early?: boolean;
  passed_early?: number;
  failed?: string;
  vertices?: number[]; // of the primitive, in the table of the draw's vertices
  runs?: Run[];
}
export interface History {
  events: PixelEvent[];
  is_cut: boolean;
  message: string;
}
export interface Step {
  index: number;
  address: string;
  text: string;
  detail: string;
  changed: [number, number[]][];
  flags: number[];
}
export interface Steps {
  program: string;
  tidx: number;
  executed: number;
  threads: number | null; // of the stage; null: not counted
  error: string;
  registers: string[];
  flags: string[];
  initial: number[][];
  initial_flags: number[];
  steps: Step[];
  textures: TextureWords[];
}
export type TextureWords = [number, number, number, number];
export interface Texture {
  address: string;
  width: number;
  height: number;
  depth: number;
  levels: number;
  array_stride: number;
  texel_bytes: number;
  format: string;
  sampler: string;
  rows: TextureRow[]; // of each level
  problem: string;
}
export interface TextureRow {
  address: string;
  width: number;
  height: number;
  stride: number;
  needs: number; // bytes that a row of the width takes
  padded: number; // the same in whole units of the layout
  tiling: string;
}
export interface DrawTextures {
  textures: { stage: string; words: TextureWords }[];
}
export interface Attribute {
  number: number;
  format: string;
  address: string;
  stride: number;
  divisor: number;
  max_index: number;
  integer: boolean;
  signed: boolean;
  coordinate: boolean; // programs that read it
  vertex: boolean;
}
export interface Vertex {
  index: number;
  instance: number;
  attributes: number[][];
  clip: (number | null)[];
  screen: (number | null)[];
  depth: number | null;
  reciprocal_w: number | null;
  point_size: number | null;
  varyings: number[];
}
export interface Vertices {
  count: number;
  first: number;
  thread: number; // of the first vertex shown, in the vertex stage of the job
  geometry: boolean;
  attributes: Attribute[];
  varyings: { flat: boolean; noperspective: boolean; centroid: boolean }[];
  vertices: Vertex[];
  problem: string;
}
export interface Pixels<Head> {
  head: Head;
  words: Uint32Array;
}

export interface Explanation {
  summary: string;
  instructions: { text: string; on_path: boolean; alone: number; all: number; notes: string[] }[];
  advice: string[];
}

export interface MemoryView {
  address: number;
  words: (number | null)[];
  by: "nobody" | "job" | "program";
  job: number;
}

/// Edited instructions, as the address has them: all answers are as if they were in the programs.
let edits = "";
/// Questions are about the capture that this one is compared with.
let other = 0;
export function setContext(patch: string, side: number) {
  edits = patch;
  other = side;
}
/// What answers depend on besides their questions.
export function context(): string {
  return `${other} ${edits}`;
}

export type Question = Record<string, string | number | undefined>;

function path(question: string, parameters: Question): string {
  const query = new URLSearchParams();
  if (edits !== "") query.set("patch", edits);
  if (other !== 0) query.set("other", String(other));
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value));
  return `ask/${question}?${query}`;
}

async function fetched(question: string, parameters: Question, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path(question, parameters), { signal: signal ?? null });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = (JSON.parse(text) as { error: string }).error;
  } catch {
    // It is no JSON: shown as it is.
  }
  throw new Error(message || response.statusText);
}

export async function ask<T>(question: string, parameters: Question = {}, signal?: AbortSignal): Promise<T> {
  return (await (await fetched(question, parameters, signal)).json()) as T;
}

/// An answer with pixels: the length of the JSON, the JSON, the pixels.
export async function askPixels<Head>(question: string, parameters: Question, signal?: AbortSignal): Promise<Pixels<Head>> {
  const buffer = await (await fetched(question, parameters, signal)).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Head;
  return { head, words: new Uint32Array(buffer.slice(4 + length)) };
}
