import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { askPixels } from "./api";
import type { Draws, Frame } from "./api";
import { kMaps, useAnswer } from "./address";
import type { HeatMap, Place } from "./address";
import { Histogram, Loupe } from "./closer";
import { differenceOf, kDepth, kStencil, ofBuffer, ofMap, withBorders } from "./colors";
import { DrawParts } from "./draw";
import { hex } from "./text";

const kMapNames: Record<HeatMap, string> = {
  fragments: "overdraw: fragments",
  shaded: "fragments shaded",
  quads: "pixels shaded with their quads",
  removed: "removed by early tests",
  samples: "samples covered",
  lists: "entries of tile lists",
};
const kFlicker = 600; // ms
const kNoSide = -1;

/// The picture of a place, or the map that is chosen in place of the buffer.
function usePicture(place: Place, before: boolean, side?: number) {
  const what = place.map ?? place.buffer;
  const key = [place.patch, place.job, place.draw ?? "all", before, place.layer, what, place.sample, side].join(" ");
  const parameters = { job: place.job, draw: place.draw, before: before ? 1 : undefined, layer: place.layer, other: side };
  return useAnswer(side === kNoSide ? undefined : key, async (signal) => ({
    ...(await (place.map !== undefined
      ? askPixels<Frame>("heat", { ...parameters, what: place.map }, signal)
      : askPixels<Frame>("picture", { ...parameters, buffer: place.buffer, sample: place.sample }, signal))),
    shows: { map: place.map, buffer: place.buffer },
  }));
}

interface Props {
  place: Place;
  draws: Draws | undefined;
  other: string | null;
  move: (change: Partial<Place>) => void;
}

export function Picture({ place, draws, other, move }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [zoom, setZoom] = useState(1);
  const [opaque, setOpaque] = useState(true);
  const [flipped, setFlipped] = useState(false);
  const [before, setBefore] = useState(false);
  const [flickers, setFlickers] = useState(false);
  const [wired, setWired] = useState(false);
  const [closer, setCloser] = useState(false);
  useEffect(() => {
    if (!flickers) return undefined;
    const timer = setInterval(() => setBefore((is) => !is), kFlicker);
    return () => clearInterval(timer);
  }, [flickers]);
  const isBefore = before && place.draw !== undefined;
  // Both are asked for, so that they change at once.
  const after_ = usePicture(place, false);
  const before_ = usePicture(place, true, place.draw !== undefined && (before || flickers) ? undefined : kNoSide);
  const answer = isBefore ? before_ : after_;
  const [compared, setCompared] = useState(false);
  const there = usePicture(place, isBefore, compared && other !== null ? 1 - place.other : kNoSide);
  const borders = useAnswer(wired ? [place.patch, place.job, place.draw ?? "all", isBefore, place.layer].join(" ") : undefined, (signal) =>
    askPixels<Frame>("heat", { job: place.job, draw: place.draw, before: isBefore ? 1 : undefined, layer: place.layer, what: "primitives" }, signal),
  );
  const last = useRef<typeof answer.value>();
  if (answer.value) last.current = answer.value;
  const picture = answer.value ?? last.current;
  const frame = picture?.head;
  // Until the answer to another question is there, the words are what was asked for before.
  const shown = { ...place, ...picture?.shows };

  const map = useMemo(() => (picture && shown.map !== undefined ? ofMap(picture.words) : undefined), [picture]);
  const difference = useMemo(() => {
    if (!compared || !picture || !there.value || there.value.words.length !== picture.words.length) return undefined;
    return differenceOf(picture.words, there.value.words, shown.map === undefined && shown.buffer !== kDepth);
  }, [picture, there.value, compared]);
  const colors = useMemo(() => {
    if (!picture) return undefined;
    if (difference) return difference.colors;
    const plain = map?.colors ?? ofBuffer(picture.words, shown.buffer, picture.head, opaque);
    const primitives = borders.value?.words;
    return wired && primitives?.length === plain.length ? withBorders(plain, primitives, picture.head.width) : plain;
  }, [picture, map, difference, opaque, wired, borders.value]);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !frame || !colors || frame.width === 0 || colors.length !== frame.width * frame.height) return;
    context.putImageData(new ImageData(new Uint8ClampedArray(colors.buffer, colors.byteOffset, colors.byteLength), frame.width, frame.height), 0, 0);
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
          <select id="buffer" value={place.map ?? place.buffer}
            onChange={(event) => {
              const value = event.currentTarget.value;
              const chosen = kMaps.find((one) => one === value);
              move(chosen ? { map: chosen } : { map: undefined, buffer: Number(value) });
            }}>
            {frame.targets.map((target) => (
              <option value={target.target}>
                colour {target.target}: {target.type}, {target.bits} bits
              </option>
            ))}
            <option value={kDepth}>depth ({frame.depth_type})</option>
            <option value={kStencil}>stencil</option>
            {kMaps.map((one) => <option key={one} value={one}>{kMapNames[one]}</option>)}
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
        <button id="before" aria-pressed={isBefore} disabled={place.draw === undefined} title="b: without the draw" onClick={() => setBefore(!before)}>before</button>
        <button id="flicker" aria-pressed={flickers} disabled={place.draw === undefined} title="Before and after the draw in turns" onClick={() => setFlickers(!flickers)}>flicker</button>
        <button id="wireframe" aria-pressed={wired} title="Borders of the primitives that were shaded last" onClick={() => setWired(!wired)}>wireframe</button>
        <button id="closer" aria-pressed={closer} title="Numbers of the pixels around, and a histogram" onClick={() => setCloser(!closer)}>numbers</button>
        {other !== null && <button id="difference" aria-pressed={compared} title={`What differs from ${other}`} onClick={() => setCompared(!compared)}>difference</button>}
        <button aria-pressed={opaque} onClick={() => setOpaque(!opaque)}>opaque</button>
        <button aria-pressed={flipped} onClick={() => setFlipped(!flipped)} title="Row 0 at the bottom, as OpenGL has it">flip</button>
        <span class="numbers" id="under">
          {frame.width}x{frame.height}
          {place.pixel && ` pixel ${place.pixel[0]},${place.pixel[1]}`}
          {under !== undefined && ` ${shown.map === undefined ? hex(under) : under}`}
          {map && `, at most ${map.most}`}
          {difference && `, ${difference.count} pixels differ`}
          {compared && there.value && picture.words.length !== there.value.words.length && ", the other picture has another size"}
        </span>
      </div>
      {frame.problem ? (
        <p class="bad">{frame.problem}</p>
      ) : (
        <div class="canvas">
          <canvas ref={canvas} id="picture" data-borders={wired && borders.value !== undefined} tabIndex={0} width={frame.width} height={frame.height} onClick={pick} onKeyDown={onKey}
            aria-label="The buffer after the draw; arrow keys move the pixel"
            style={{ width: `${frame.width * zoom}px`, height: `${frame.height * zoom}px`, transform: flipped ? "scaleY(-1)" : "none" }} />
        </div>
      )}
      {closer && !frame.problem && colors && (
        <div class="closer" id="numbers">
          <Loupe words={picture.words} colors={colors} frame={frame} place={shown} move={move} />
          <Histogram words={picture.words} frame={frame} place={shown} />
        </div>
      )}
      {!draw && draws && draws.draws.length > 0 && (
        <p id="all-draws">
          After all draws: <button onClick={() => move({ draw: draws.draws.length - 1 })}>[ the last one</button> with its state, textures and vertices.
        </p>
      )}
      {draw && <DrawParts key={`${place.job} ${draw.number}`} draw={draw} place={place} move={move} />}
    </div>
  );
}
