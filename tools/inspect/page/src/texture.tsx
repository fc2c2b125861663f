// A texture as a program looks it up: its picture, format, layout, and the rows of each level.
import { useEffect, useRef, useState } from "preact/hooks";
import { askPixels } from "./api";
import type { Texture, TextureRow, TextureWords } from "./api";
import { useAnswer } from "./address";
import { hex } from "./text";

const kShown = 192; // pixels of the larger side, at most

function Row({ row, level, chosen, onClick }: { row: TextureRow; level: number; chosen: boolean; onClick: () => void }) {
  return (
    <tr class={chosen ? "chosen" : ""} data-level={level}>
      <td><button class="plain" aria-pressed={chosen} onClick={onClick}>{level}</button></td>
      <td>{row.width}x{row.height}</td>
      <td>{row.stride} B</td>
      <td class={row.stride === row.needs ? "" : row.stride > row.padded ? "bad" : "faint"}>{row.needs} B</td>
      <td>{row.address}</td>
      <td class="text" title={row.tiling}>{row.tiling.replace(/ \(.*/, "")}</td>
    </tr>
  );
}

export function TextureView({ job, words, stage }: { job: number; words: TextureWords; stage?: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [level, setLevel] = useState(0);
  const answer = useAnswer(`${job} ${words} ${level}`, (signal) =>
    askPixels<Texture>("texture", { job, p0: words[0], p1: words[1], p2: words[2], p3: words[3], level }, signal),
  );
  const last = useRef<typeof answer.value>();
  if (answer.value) last.current = answer.value;
  const shown = answer.value ?? last.current;
  const texture = shown?.head;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !texture || !shown || shown.words.length === 0) return;
    const bytes = new Uint8ClampedArray(shown.words.length * 4);
    new Uint32Array(bytes.buffer).set(shown.words);
    context.putImageData(new ImageData(bytes, texture.width, texture.height), 0, 0);
  }, [shown]);
  if (answer.error) return <p class="bad">{answer.error}</p>;
  if (!texture || !shown) return <p class="faint">It is read ...</p>;
  const scale = Math.min(kShown / Math.max(texture.width, texture.height), 8);
  return (
    <article class="event texture">
      {texture.problem ? (
        <p class="bad">{texture.problem}</p>
      ) : (
        <canvas ref={canvas} width={texture.width} height={texture.height} style={{ width: `${Math.max(texture.width * scale, 1)}px`, height: `${Math.max(texture.height * scale, 1)}px` }} />
      )}
      <div>
        <div>
          {stage && <span class="faint">{stage}: </span>}
          <b>{texture.format}</b> {texture.width}x{texture.height}
          {texture.depth > 1 ? `x${texture.depth}` : ""}, {texture.texel_bytes} bytes a texel or block
          {texture.depth > 1 && texture.array_stride > 0 ? `, ${texture.array_stride} a layer` : ""}
        </div>
        {texture.rows[level] && <div class="faint">layout of level {level}: {texture.rows[level].tiling}</div>}
        {texture.sampler && <div class="faint">{texture.sampler}</div>}
        <div class="faint">configuration {hex(words[0])}</div>
        {texture.rows.length > 0 && (
          <table class="numbers levels">
            <thead>
              <tr><th>level</th><th>size</th><th title="From one row of texels, or blocks, to the next in memory">row takes</th><th title="Texels of the width; layouts pad rows to their units">width needs</th><th>at</th><th class="text">layout</th></tr>
            </thead>
            <tbody>
              {texture.rows.map((row, n) => <Row key={n} row={row} level={n} chosen={n === level && texture.rows.length > 1} onClick={() => setLevel(n)} />)}
            </tbody>
          </table>
        )}
      </div>
    </article>
  );
}
