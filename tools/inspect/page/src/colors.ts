// What stands in buffers and maps, as colours of the screen.
import type { Frame } from "./api";
import { number } from "./text";

export const kDepth = 9;
export const kStencil = 10;

function gray(value: number): number {
  return (0xff000000 | (value * 0x010101)) >>> 0;
}

function range(values: ArrayLike<number>): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (let n = 0; n < values.length; ++n) {
    const value = values[n]!;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

export function depths(words: Uint32Array, frame: Frame): ArrayLike<number> {
  if (frame.depth_type === "32F") return new Float32Array(words.buffer, words.byteOffset, words.length);
  const most = frame.depth_type === "24" ? 0xffffff : 0xffff;
  return Float64Array.from(words, (word) => word / most);
}

/// Depth is shown from the nearest (black) to the farthest (white) that there is.
export function ofBuffer(words: Uint32Array, buffer: number, frame: Frame, opaque: boolean): Uint32Array {
  if (buffer === kStencil) return words.map((word) => gray(word & 255));
  if (buffer !== kDepth) {
    if (!opaque) return words;
    const colors = words.slice();
    for (let n = 0; n < colors.length; ++n) colors[n]! |= 0xff000000;
    return colors;
  }
  const values = depths(words, frame);
  const [low, high] = range(values);
  const scale = high > low ? 255 / (high - low) : 0;
  return words.map((_, n) => gray(Math.round((values[n]! - low) * scale)));
}

/// From blue over green to red; nothing is black. Brightness grows, too, for whoever sees no difference of hues.
export function heat(value: number, most: number): number {
  if (value === 0) return 0xff000000;
  const at = most > 1 ? (value - 1) / (most - 1) : 1;
  const part = (from: number) => Math.max(0, Math.min(1, 1.5 - Math.abs(0.5 + 3 * at - from)));
  const level = 0.55 + 0.45 * at;
  const byte = (share: number) => Math.round(255 * share * level);
  return (0xff000000 | (byte(part(1)) << 16) | (byte(part(2)) << 8) | byte(part(3))) >>> 0;
}

export function ofMap(counts: Uint32Array): { colors: Uint32Array; most: number } {
  const most = counts.length > 0 ? range(counts)[1] : 0;
  return { colors: counts.map((count) => heat(count, most)), most };
}

/// Borders between pixels of other primitives, over the picture.
export function withBorders(colors: Uint32Array, primitives: Uint32Array, width: number): Uint32Array {
  const result = colors.slice();
  for (let n = 0; n < primitives.length; ++n) {
    const right = n % width !== width - 1 && primitives[n] !== primitives[n + 1];
    const below = n + width < primitives.length && primitives[n] !== primitives[n + width];
    if (right || below) result[n] = 0xffff40ff;
  }
  return result;
}

/// Black where two pictures are the same; else the channels' differences, brightened, or white.
export function differenceOf(here: Uint32Array, there: Uint32Array, hasChannels: boolean): { colors: Uint32Array; count: number } {
  let count = 0;
  const colors = here.map((word, n) => {
    const other = there[n]!;
    if (word === other) return 0xff000000;
    ++count;
    if (!hasChannels) return 0xffffffff;
    let color = 0xff000000;
    for (const shift of [0, 8, 16]) {
      const by = Math.abs(((word >>> shift) & 255) - ((other >>> shift) & 255));
      if (by !== 0) color |= Math.min(64 + 4 * by, 255) << shift;
    }
    return color === (0xff000000 | 0) ? 0xff404040 : color >>> 0; // alpha alone
  });
  return { colors, count };
}

/// What a pixel holds, in words.
export function valueText(word: number, what: { map?: unknown; buffer: number }, frame: Frame): string[] {
  if (what.map !== undefined) return [String(word)];
  if (what.buffer === kDepth) return [number(depths(Uint32Array.of(word), frame)[0] ?? null, 5)];
  if (what.buffer === kStencil) return [String(word & 255)];
  return [0, 8, 16, 24].map((shift) => String((word >>> shift) & 255));
}
