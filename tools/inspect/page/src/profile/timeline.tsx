// When which job runs, to zoom into.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration } from "../text";
import { frameName, isPredicted, kKinds, percent, sum, timeOf } from "./model";
import type { Job, Profile } from "./model";
import { Legend } from "./table";
import { tracksOf } from "./tracks";
import type { Counter, Item, Track } from "./tracks";

const kGutter = 136; // labels are in it
const kAxis = 22;
const kShortest = 20; // ns that it shows

/// The window of time that is shown.
class Window {
  from = 0;
  constructor(readonly most: number, public to = most) {}
  get span() {
    return this.to - this.from;
  }
  show(from: number, to: number) {
    const size = Math.min(Math.max(to - from, kShortest), this.most);
    this.from = Math.min(Math.max(from, 0), this.most - size);
    this.to = this.from + size;
  }
  zoom(factor: number, at: number) {
    const from = at - (at - this.from) * factor;
    this.show(from, from + this.span * factor);
  }
}

interface Hit {
  x: number;
  y: number;
  width: number;
  height: number;
  item: Item;
}

/// Colours as the page has them now, dark or light.
function painter(canvas: HTMLCanvasElement) {
  const known = new Map<string, string>();
  const probe = document.createElement("span");
  return (name: string) => {
    let found = known.get(name);
    if (found === undefined) {
      canvas.parentElement!.append(probe);
      probe.style.color = `var(--${name})`;
      found = getComputedStyle(probe).color;
      probe.remove();
      known.set(name, found);
    }
    return found;
  };
}

function ticks(shown: Window, width: number): number[] {
  const wanted = shown.span / Math.max(width / 110, 1);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted) ?? wanted;
  const list = [];
  for (let at = Math.ceil(shown.from / step) * step; at <= shown.to; at += step) list.push(at);
  return list;
}

function firstVisible(items: Item[], from: number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle]!.begin < from) low = middle + 1;
    else high = middle;
  }
  // Items may overlap: those before one that ends too early may still be visible, hence the margin.
  while (low > 0 && items[low - 1]!.end > from) --low;
  return Math.max(low - 1, 0);
}

class Drawing {
  readonly hits: Hit[] = [];
  private readonly paint: (name: string) => string;
  private readonly scale: number;
  constructor(canvas: HTMLCanvasElement, private readonly g: CanvasRenderingContext2D, private readonly shown: Window, private readonly width: number, private readonly chosen: Job | undefined) {
    this.paint = painter(canvas);
    this.scale = (width - kGutter) / shown.span;
  }

  axis(height: number) {
    for (const at of ticks(this.shown, this.width - kGutter)) {
      const x = kGutter + (at - this.shown.from) * this.scale;
      this.g.fillStyle = this.paint("line");
      this.g.fillRect(x, kAxis - 4, 1, height);
      this.g.fillStyle = this.paint("faint");
      this.g.fillText(at === 0 ? "0" : duration(at).replace(/\.?0+ /, " "), x + 3, 9);
    }
  }

  track(track: Track, y: number) {
    this.g.fillStyle = this.paint(track.isPart ? "faint" : "ink");
    this.g.fillText(track.label, track.isPart ? 14 : 2, track.counter ? y + 9 : y + (track.height - 4) / 2, kGutter - 18);
    if (track.counter) this.counter(track.counter, track, y);
    else this.items(track, y);
  }

  private items(track: Track, y: number) {
    let last = -1;
    for (let n = firstVisible(track.items, this.shown.from); n < track.items.length; ++n) {
      const item = track.items[n]!;
      if (item.begin > this.shown.to) break;
      const x0 = Math.max(kGutter + (item.begin - this.shown.from) * this.scale, kGutter);
      const x1 = Math.min(kGutter + (item.end - this.shown.from) * this.scale, this.width);
      if (x1 < kGutter || x1 - last < 0.7) continue; // another one has this pixel
      const width = Math.max(x1 - x0, 1);
      last = x0 + width;
      this.item(item, track, x0, y, width);
      this.hits.push({ x: x0, y, width: Math.max(width, 3), height: track.height - 4, item });
    }
  }

  private item(item: Item, track: Track, x: number, y: number, width: number) {
    this.g.globalAlpha = item.frame ? (item.frame.number % 2 ? 0.2 : 0.34) : track.isPart ? 0.55 : 1;
    this.g.fillStyle = this.paint(track.paint);
    this.g.fillRect(x, y, Math.max(width - (width > 4 ? 1 : 0), 0.8), track.height - 4);
    this.g.globalAlpha = 1;
    if (item.job && item.job === this.chosen && !track.isPart) {
      this.g.strokeStyle = this.paint("accent");
      this.g.lineWidth = 2;
      this.g.strokeRect(x + 1, y + 1, Math.max(width - 3, 1), track.height - 6);
    }
    if (width <= 26) return;
    this.g.save();
    this.g.beginPath();
    this.g.rect(x, y, width - 3, track.height);
    this.g.clip();
    this.g.fillStyle = this.paint("ink");
    this.g.fillText(item.text, x + 5, y + (track.height - 4) / 2);
    this.g.restore();
  }

  private counter({ points, top, unit }: Counter, track: Track, y: number) {
    const height = track.height - 8;
    const base = y + height + 2;
    this.g.save();
    this.g.beginPath();
    this.g.rect(kGutter, y, this.width - kGutter, track.height);
    this.g.clip();
    this.g.beginPath();
    this.g.moveTo(kGutter, base);
    let value = 0;
    for (const [at, next] of points) {
      const x = Math.min(Math.max(kGutter + (at - this.shown.from) * this.scale, kGutter), this.width);
      this.g.lineTo(x, base - (value / top) * height);
      this.g.lineTo(x, base - (next / top) * height);
      value = next;
      if (at > this.shown.to) break;
    }
    this.g.lineTo(this.width, base - (value / top) * height);
    this.g.lineTo(this.width, base);
    this.g.closePath();
    this.g.globalAlpha = 0.35;
    this.g.fillStyle = this.paint(track.paint);
    this.g.fill();
    this.g.restore();
    this.g.fillStyle = this.paint("faint");
    this.g.textAlign = "right";
    this.g.fillText(`${top.toFixed(2)}${unit} at most`, kGutter - 8, y + track.height - 9);
    this.g.textAlign = "left";
  }
}

function paintAll(canvas: HTMLCanvasElement, tracks: Track[], shown: Window, chosen: Job | undefined): Hit[] {
  const width = canvas.clientWidth;
  const height = kAxis + sum(tracks, (track) => track.height) + 6;
  const ratio = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const g = canvas.getContext("2d")!;
  g.scale(ratio, ratio);
  g.font = "11.5px system-ui, 'DejaVu Sans', sans-serif";
  g.textBaseline = "middle";
  const drawing = new Drawing(canvas, g, shown, width, chosen);
  drawing.axis(height);
  let y = kAxis;
  for (const track of tracks) {
    drawing.track(track, y);
    y += track.height;
  }
  return drawing.hits;
}

function Tip({ profile, item }: { profile: Profile; item: Item }) {
  const name = frameName(profile);
  if (item.frame) return <><b>{name} {item.frame.number}</b><div>{duration(item.frame.end_ns - item.frame.begin_ns)}, {item.frame.jobs} jobs, client {item.frame.client}</div></>;
  const job = item.job!;
  return (
    <>
      {item.span && <div><b>{item.span}: {item.text}, {duration(item.end - item.begin)}</b>, of</div>}
      <b>{job.kind} {job.number}: {duration(timeOf(job))}</b>
      <div>client {job.client}{job.frame ? `, ${name} ${job.frame}` : ""}{isPredicted(job) ? `, bound by ${job.bound}` : ""}</div>
      {isPredicted(job) && <div>{(["qpu", "tmu", "l2", "dram"] as const).map((share) => `${share.toUpperCase()} ${percent(job.shares[share], 1)}`).join(", ")}</div>}
    </>
  );
}

interface Props {
  profile: Profile;
  chosen: Job | undefined;
  choose: (job: Job) => void;
  shown: { current: ((from: number, to: number) => void) | null }; // shows a window of time
}

export function ProfileTimeline({ profile, chosen, choose, shown: show }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const tracks = useMemo(() => tracksOf(profile), [profile]);
  const shown = useRef(new Window(Math.max(profile.end_ns, kShortest)));
  const hits = useRef<Hit[]>([]);
  const dragged = useRef<{ x: number; from: number; moved: boolean } | null>(null);
  const [tip, setTip] = useState<{ item: Item; x: number; y: number }>();
  const paint = () => {
    if (canvas.current) hits.current = paintAll(canvas.current, tracks, shown.current, chosen);
  };
  const go = (from: number, to: number) => {
    shown.current.show(from, to);
    paint();
  };
  const zoom = (factor: number, at = (shown.current.from + shown.current.to) / 2) => {
    shown.current.zoom(factor, at);
    paint();
  };
  show.current = (from, to) => {
    go(from, to);
    canvas.current?.scrollIntoView({ block: "center" });
  };
  useEffect(() => {
    paint();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const { from, to, span } = shown.current;
      const box = canvas.current!.getBoundingClientRect();
      const at = from + (Math.max(event.clientX - box.left - kGutter, 0) / (box.width - kGutter)) * span;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) go(from + (event.deltaX / 600) * span, to + (event.deltaX / 600) * span);
      else zoom(event.deltaY > 0 ? 1.25 : 0.8, at);
    };
    const element = canvas.current!;
    element.addEventListener("wheel", wheel, { passive: false });
    addEventListener("resize", paint);
    dark.addEventListener("change", paint);
    return () => {
      element.removeEventListener("wheel", wheel);
      removeEventListener("resize", paint);
      dark.removeEventListener("change", paint);
    };
  }, [profile, chosen]);
  const hitAt = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    // Of those that overlap, the one that was painted last.
    return hits.current.filter((hit) => x >= hit.x && x <= hit.x + hit.width && y >= hit.y && y <= hit.y + hit.height).at(-1)?.item;
  };
  const onMove = (event: MouseEvent) => {
    const drag = dragged.current;
    if (drag && event.buttons === 0) dragged.current = null;
    else if (drag) {
      const { span } = shown.current;
      const by = ((drag.x - event.clientX) / (canvas.current!.clientWidth - kGutter)) * span;
      drag.moved ||= Math.abs(event.clientX - drag.x) > 3;
      if (drag.moved) go(drag.from + by, drag.from + by + span);
    }
    const item = drag?.moved ? undefined : hitAt(event);
    setTip(item && { item, x: Math.min(event.clientX + 14, innerWidth - 380), y: Math.min(event.clientY + 14, innerHeight - 90) });
  };
  const onUp = (event: MouseEvent) => {
    const item = dragged.current?.moved ? undefined : hitAt(event);
    dragged.current = null;
    if (item?.job) choose(item.job);
    if (item?.frame) go(item.frame.begin_ns, item.frame.end_ns);
  };
  const onKey = (event: KeyboardEvent) => {
    const { from, to, span } = shown.current;
    const move = { ArrowLeft: -0.15, ArrowRight: 0.15 }[event.key];
    if (move) go(from + move * span, to + move * span);
    if (event.key === "+" || event.key === "ArrowUp") zoom(0.7);
    if (event.key === "-" || event.key === "ArrowDown") zoom(1.4);
    if (event.key.startsWith("Arrow")) event.preventDefault();
  };
  return (
    <section>
      <h2>Timeline</h2>
      <div class="bar">
        <button onClick={() => zoom(0.6)} aria-label="closer">+</button>
        <button onClick={() => zoom(1.6)} aria-label="farther">−</button>
        <button onClick={() => go(0, profile.end_ns)}>all</button>
        <span class="faint">wheel: zoom; drag or arrow keys: move; a click: job</span>
        <Legend entries={kKinds.filter((kind) => profile.jobs.some((job) => job.kind === kind)).map((kind) => [kind, kind])} />
      </div>
      <canvas id="profile-timeline" class="tracks" ref={canvas} tabIndex={0} role="img" aria-label="Jobs by time; the table of jobs has the same" onMouseMove={onMove}
        onMouseLeave={() => setTip(undefined)} onMouseDown={(event) => { dragged.current = { x: event.clientX, from: shown.current.from, moved: false }; }}
        onMouseUp={onUp} onDblClick={() => go(0, profile.end_ns)} onKeyDown={onKey} />
      {tip && <div class="tip" style={{ left: `${tip.x}px`, top: `${tip.y}px` }}><Tip profile={profile} item={tip.item} /></div>}
      <p class="faint">
        Each queue runs one job at a time in the order of the capture, render jobs begin behind their bin jobs, and of each client two frames are under way at most.
        What else jobs wait for, and what the CPU takes, is not in a capture. DRAM and threads are means over each job.
      </p>
    </section>
  );
}
