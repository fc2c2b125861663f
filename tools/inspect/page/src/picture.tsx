import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { askPixels } from "./api";
import type { Draws, Frame } from "./api";
import { useAnswer } from "./address";
import type { Place } from "./address";
import { hex } from "./text";

const kDepth = 9;
const kStencil = 10;

/// What stands in the buffer, as colours of the screen.
function shown(words: Uint32Array, place: Place, frame: Frame, opaque: boolean): Uint32Array {
  if (place.buffer === kStencil) return words.map((word) => (0xff000000 | ((word & 255) * 0x010101)) >>> 0);
  if (place.buffer !== kDepth) return opaque ? words.map((word) => (word | 0xff000000) >>> 0) : words;
  // What there is between the nearest and the farthest depth.
  const floats = frame.depth_type === "32F" ? new Float32Array(words.buffer) : words;
  let low = Infinity;
  let high = -Infinity;
  for (const depth of floats) {
    if (depth < low) low = depth;
    if (depth > high) high = depth;
  }
  const scale = high > low ? 255 / (high - low) : 0;
  return words.map((_, n) => (0xff000000 | (Math.round((floats[n]! - low) * scale) * 0x010101)) >>> 0);
}

interface Props {
  place: Place;
  draws: Draws | undefined;
  move: (change: Partial<Place>) => void;
}

export function Picture({ place, draws, move }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [zoom, setZoom] = useState(1);
  const [opaque, setOpaque] = useState(true);
  const [flipped, setFlipped] = useState(false);
  const key = [place.job, place.draw ?? "all", place.layer, place.buffer, place.sample].join(" ");
  const answer = useAnswer(key, (signal) =>
    askPixels<Frame>("picture", { job: place.job, draw: place.draw, layer: place.layer, buffer: place.buffer, sample: place.sample }, signal),
  );
  const last = useRef<typeof answer.value>();
  if (answer.value) last.current = answer.value;
  const picture = answer.value ?? last.current;
  const frame = picture?.head;

  const colors = useMemo(() => picture && shown(picture.words, place, picture.head, opaque), [picture, place.buffer, opaque]);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !frame || !colors || frame.width === 0 || colors.length !== frame.width * frame.height) return;
    const bytes = new Uint8ClampedArray(colors.length * 4);
    new Uint32Array(bytes.buffer).set(colors);
    context.putImageData(new ImageData(bytes, frame.width, frame.height), 0, 0);
    if (!place.pixel) return;
    const [x, y] = place.pixel;
    context.strokeStyle = "#f0f";
    context.lineWidth = 1;
    context.strokeRect(x - 1.5, y - 1.5, 4, 4);
  }, [colors, place.pixel?.[0], place.pixel?.[1], frame?.width]);

  if (answer.error) return <p class="bad">{answer.error}</p>;
  if (!frame || !picture) return <p class="faint">The job runs ...</p>;
  const step = (x: number, y: number) => {
    const [atX, atY] = place.pixel ?? [0, 0];
    const clamp = (value: number, size: number) => Math.min(Math.max(value, 0), size - 1);
    move({ pixel: [clamp(atX + x, frame.width), clamp(atY + y, frame.height)], thread: undefined });
  };
  const onKey = (event: KeyboardEvent) => {
    const up = flipped ? 1 : -1;
    const by: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, up], ArrowDown: [0, -up] };
    const moved = by[event.key];
    if (!moved) return;
    event.preventDefault();
    const many = event.shiftKey ? 16 : 1;
    step(moved[0] * many, moved[1] * many);
  };
  const pick = (event: MouseEvent) => {
    const place_ = canvas.current!.getBoundingClientRect();
    const x = Math.floor(((event.clientX - place_.left) / place_.width) * frame.width);
    const y = Math.floor(((event.clientY - place_.top) / place_.height) * frame.height);
    move({ pixel: [x, flipped ? frame.height - 1 - y : y], thread: undefined });
  };
  const draw = draws?.draws[place.draw ?? -1];
  const under = place.pixel && picture.words[place.pixel[1] * frame.width + place.pixel[0]];
  return (
    <div>
      <div class="bar">
        <label>
          Buffer{" "}
          <select id="buffer" value={place.buffer} onChange={(event) => move({ buffer: Number(event.currentTarget.value) })}>
            {frame.targets.map((target) => (
              <option value={target.target}>
                colour {target.target}: {target.type}, {target.bits} bits
              </option>
            ))}
            <option value={kDepth}>depth ({frame.depth_type})</option>
            <option value={kStencil}>stencil</option>
          </select>
        </label>
        {frame.layers > 1 && (
          <label>
            Layer{" "}
            <select value={place.layer} onChange={(event) => move({ layer: Number(event.currentTarget.value) })}>
              {Array.from({ length: frame.layers }, (_, n) => <option value={n}>{n}</option>)}
            </select>
          </label>
        )}
        {frame.samples > 1 && (
          <label>
            Sample{" "}
            <select value={place.sample} onChange={(event) => move({ sample: Number(event.currentTarget.value) })}>
              {[0, 1, 2, 3].map((n) => <option value={n}>{n}</option>)}
            </select>
          </label>
        )}
        <button onClick={() => setZoom(Math.max(zoom / 2, 0.25))} aria-label="Smaller">-</button>
        <span class="numbers">{zoom * 100} %</span>
        <button onClick={() => setZoom(Math.min(zoom * 2, 32))} aria-label="Larger">+</button>
        <button aria-pressed={opaque} onClick={() => setOpaque(!opaque)}>opaque</button>
        <button aria-pressed={flipped} onClick={() => setFlipped(!flipped)} title="Row 0 at the bottom, as OpenGL has it">flip</button>
        <span class="numbers" id="under">
          {frame.width}x{frame.height}
          {place.pixel && ` pixel ${place.pixel[0]},${place.pixel[1]}`}
          {under !== undefined && ` ${hex(under)}`}
        </span>
      </div>
      {frame.problem ? (
        <p class="bad">{frame.problem}</p>
      ) : (
        <div class="canvas">
          <canvas ref={canvas} id="picture" tabIndex={0} width={frame.width} height={frame.height} onClick={pick} onKeyDown={onKey}
            aria-label="The buffer after the draw; arrow keys move the pixel"
            style={{ width: `${frame.width * zoom}px`, height: `${frame.height * zoom}px`, transform: flipped ? "scaleY(-1)" : "none" }} />
        </div>
      )}
      {draw && (
        <section>
          <h2>Draw {draw.number}</h2>
          <ul class="state">
            <li>{draw.vertices} vertices are shaded, {draw.primitives} primitives stand in {draw.entries} entries of tile lists</li>
            {draw.programs.map((program) => <li>{program.stage} program {program.code}</li>)}
            {draw.state.map((line) => <li>{line}</li>)}
          </ul>
        </section>
      )}
    </div>
  );
}
