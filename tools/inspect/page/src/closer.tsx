// The pixels around the chosen one with their numbers, and how often values occur in the whole picture.
import { useEffect, useRef } from "preact/hooks";
import type { Frame } from "./api";
import type { Place } from "./address";
import { color } from "./text";
import { kDepth, kStencil, valueText } from "./colors";

const kAround = 3;

interface Props {
  words: Uint32Array;
  colors: Uint32Array;
  frame: Frame;
  place: Place;
  move: (change: Partial<Place>) => void;
}

export function Loupe({ words, colors, frame, place, move }: Props) {
  if (!place.pixel) return <p class="faint">Choose a pixel: those around it are shown with their numbers.</p>;
  const [x, y] = place.pixel;
  const offsets = Array.from({ length: 2 * kAround + 1 }, (_, n) => n - kAround);
  return (
    <table class="loupe numbers" aria-label="Pixels around the chosen one">
      <tbody>
        <tr>
          <th />
          {offsets.map((dx) => <th key={dx}>{x + dx}</th>)}
        </tr>
        {offsets.map((dy) => (
          <tr key={dy}>
            <th>{y + dy}</th>
            {offsets.map((dx) => {
              const inside = x + dx >= 0 && y + dy >= 0 && x + dx < frame.width && y + dy < frame.height;
              const at = (y + dy) * frame.width + x + dx;
              return (
                <td key={dx} class={dx === 0 && dy === 0 ? "changed" : ""} onClick={() => inside && move({ pixel: [x + dx, y + dy], thread: undefined })}>
                  {inside && <span class="swatch" style={{ background: color((colors[at]! | 0xff000000) >>> 0) }} />}
                  {inside && valueText(words[at]!, place, frame).map((one, n) => <div key={n}>{one}</div>)}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const kBins = 256;

/// A line for each channel, or for what stands there alone.
function curves(words: Uint32Array, place: Place, frame: Frame): { name: string; stroke: string; bins: number[]; text: string }[] {
  const count = (name: string, stroke: string, valueOf: (word: number) => number, text: (low: number, high: number) => string) => {
    let low = Infinity;
    let high = -Infinity;
    for (const word of words) {
      const value = valueOf(word);
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const bins = new Array<number>(kBins).fill(0);
    const whole = place.map === undefined && place.buffer !== kDepth;
    const from = whole ? 0 : low;
    const scale = whole ? 1 : high > low ? (kBins - 1) / (high - low) : 0;
    for (const word of words) bins[Math.round((valueOf(word) - from) * scale)]!++;
    return { name, stroke, bins, text: text(low, high) };
  };
  const between = (low: number, high: number) => `${Number(low.toPrecision(6))} to ${Number(high.toPrecision(6))}`;
  if (place.map !== undefined) return [count("count", "currentColor", (word) => word, between)];
  if (place.buffer === kStencil) return [count("stencil", "currentColor", (word) => word & 255, between)];
  if (place.buffer === kDepth) {
    const view = new DataView(new ArrayBuffer(4));
    const ofFloat = (word: number) => (view.setUint32(0, word), view.getFloat32(0));
    const most = frame.depth_type === "24" ? 0xffffff : 0xffff;
    return [count("depth", "currentColor", frame.depth_type === "32F" ? ofFloat : (word) => word / most, between)];
  }
  return ["red", "green", "blue", "alpha"].map((name, n) => count(name, ["#e33", "#2a2", "#36f", "#888"][n]!, (word) => (word >>> (8 * n)) & 255, between));
}

export function Histogram({ words, frame, place }: { words: Uint32Array; frame: Frame; place: Place }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const lines = curves(words, place, frame);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, kBins, 100);
    const most = Math.log1p(Math.max(...lines.flatMap((line) => line.bins)));
    for (const { stroke, bins } of lines) {
      context.strokeStyle = stroke === "currentColor" ? getComputedStyle(canvas.current!).color : stroke;
      context.beginPath();
      bins.forEach((count, n) => context.lineTo(n + 0.5, 99.5 - (99 * Math.log1p(count)) / (most || 1)));
      context.stroke();
    }
  }, [words, place.buffer, place.map]);
  return (
    <div class="histogram">
      <canvas ref={canvas} width={kBins} height={100} aria-label="How often values occur, on a logarithmic scale" />
      {lines.map((line) => <div key={line.name} class="numbers"><span style={{ color: line.stroke }}>{line.name}</span> {line.text}</div>)}
    </div>
  );
}
