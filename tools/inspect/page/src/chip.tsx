// The blocks of the chip, with what a job is predicted to do in each.
import type { Job, Time, Units } from "./api";
import { duration } from "./text";

interface Block {
  name: string;
  title: string;
  at: [number, number, number, number]; // x, y, width, height
  share?: (units: Units) => number;
  lines: (units: Units) => string[];
}

export function amount(bytes: number): string {
  if (bytes < 10_000) return `${bytes} B`;
  return bytes < 10_000_000 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
const hits = (good: number, bad: number) => (good + bad === 0 ? "no requests" : `${((100 * good) / (good + bad)).toFixed(1)} % of ${good + bad} hit`);

const kBlocks: Block[] = [
  { name: "CLE", title: "reads control lists", at: [20, 20, 120, 60], lines: () => ["control lists"] },
  { name: "VCD", title: "fetches attributes", at: [20, 110, 120, 60], share: (u) => u.fetch, lines: () => ["attributes"] },
  { name: "PTB", title: "clips, and makes the lists of tiles", at: [20, 200, 120, 70], share: (u) => u.binner, lines: (u) => [`lists ${amount(u.lists_written)}`] },
  { name: "PSE, FEP", title: "sets primitives up, and makes quads of them", at: [20, 300, 120, 70], share: (u) => u.front_end, lines: (u) => [`lists ${amount(u.lists_read)}`] },
  {
    name: "QPUs", title: "issue instructions, or wait for what these do", at: [220, 110, 190, 160], share: (u) => u.qpu,
    lines: (u) => [`${u.qpus} of them`, `${u.instructions} instructions`, `issue ${(100 * u.issue).toFixed(1)} %`, `${(u.threads / Math.max(u.qpus, 1)).toFixed(2)} threads on each`],
  },
  { name: "TLB", title: "tests, blends, keeps the tile", at: [220, 300, 190, 70], share: (u) => u.tlb, lines: (u) => [`in ${amount(u.tile_loaded)}, out ${amount(u.tile_stored)}`] },
  { name: "TMUs", title: "textures and memory", at: [490, 110, 170, 80], share: (u) => u.tmu, lines: (u) => [`${u.lookups} lookups`, hits(u.l1_hits, u.l1_misses)] },
  { name: "L2T", title: "cache of all units that read", at: [490, 220, 170, 70], share: (u) => u.l2, lines: (u) => [hits(u.l2_hits, u.l2_misses)] },
  { name: "TFU", title: "formats textures", at: [490, 20, 170, 60], lines: (u) => [amount(u.transferred)] },
  { name: "Memory", title: "SDRAM", at: [740, 110, 130, 260], share: (u) => u.dram, lines: (u) => [`read ${amount(u.read_bytes)}`, `written ${amount(u.written_bytes)}`] },
];

/// From the middle of a side of one block to that of another.
const kWays: [number, number, number, number][] = [
  [80, 80, 80, 110], [80, 170, 80, 200], [80, 270, 80, 300],
  [140, 140, 220, 140], [140, 235, 220, 235], [140, 335, 220, 335],
  [315, 270, 315, 300], [410, 150, 490, 150], [575, 190, 575, 220],
  [660, 255, 740, 255], [410, 335, 740, 335], [660, 50, 805, 50], [805, 50, 805, 110],
];

export function Chip({ job, time }: { job: Job; time: Time | undefined }) {
  if (!time) return <p class="faint">The time of the job is predicted ...</p>;
  const units = time.units;
  if (!units) return <p class="bad">No times are predicted: {time.why_not}</p>;
  return (
    <figure class="chip">
      <figcaption>
        Job {job.number}, {job.kind}: {duration(time.ns ?? 0)}, {units.clocks} clocks, bound by {time.bound}. Bars: the part of that time in which a block has work.
      </figcaption>
      <svg viewBox="0 0 890 390" role="img" aria-label="The blocks of the chip">
        {kWays.map(([x1, y1, x2, y2], n) => <line key={n} x1={x1} y1={y1} x2={x2} y2={y2} />)}
        {kBlocks.map(({ name, title, at: [x, y, width, height], share, lines }) => {
          const busy = share?.(units);
          return (
            <g key={name} data-block={name}>
              <title>{title}</title>
              <rect x={x} y={y} width={width} height={height} rx={6} class="block" />
              {busy !== undefined && <rect x={x} y={y + height - 6} width={width * Math.min(busy, 1)} height={6} class={busy > 0.75 ? "bar hot" : "bar"} />}
              <text x={x + 8} y={y + 18} class="name">{name}</text>
              {busy !== undefined && <text x={x + width - 8} y={y + 18} text-anchor="end">{(100 * busy).toFixed(1)} %</text>}
              {lines(units).map((line, n) => <text key={n} x={x + 8} y={y + 36 + 16 * n}>{line}</text>)}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
