// A draw below its picture: state, textures, and vertices as they were fetched and shaded.
import { ask } from "./api";
import type { Attribute, Draw, DrawTextures, Vertex, Vertices } from "./api";
import { useAnswer } from "./address";
import type { Place } from "./address";
import { TextureView } from "./texture";
import { number, word } from "./text";

const kVertices = 16; // of a batch, which a thread shades
const kLanes = 16;

type Move = (change: Partial<Place>) => void;

function Textures({ place, draw }: { place: Place; draw: Draw }) {
  const answer = useAnswer(`${place.job} ${draw.number}`, (signal) => ask<DrawTextures>("textures", { job: place.job, draw: draw.number }, signal));
  if (answer.error) return <p class="bad">{answer.error}</p>;
  if (!answer.value) return <p class="faint">The draw runs ...</p>;
  if (answer.value.textures.length === 0) return <p class="faint">Its programs look none up.</p>;
  return <>{answer.value.textures.map((one) => <TextureView key={`${one.stage} ${one.words}`} job={place.job} words={one.words} stage={one.stage} />)}</>;
}

function attributeText(attribute: Attribute): string {
  const by = attribute.coordinate ? (attribute.vertex ? "both programs" : "the coordinate program alone") : "the vertex program alone";
  const limit = attribute.max_index < 0xffffff ? `, up to element ${attribute.max_index}` : "";
  const divisor = attribute.divisor > 0 ? `, the next one after ${attribute.divisor} instances` : "";
  return `${attribute.format}, from ${attribute.address}, ${attribute.stride} bytes apart${divisor}${limit}; read by ${by}`;
}

function attributeValue(attribute: Attribute, words: number[]): string {
  const form = attribute.integer ? (attribute.signed ? "int" : "unsigned") : "float";
  return words.map((one) => word(one, form)).join(" ");
}

const interpolation = (one: Vertices["varyings"][number]) => [one.flat && "flat", one.noperspective && "noperspective", one.centroid && "centroid"].filter(Boolean).join(" ");

interface RowProps {
  at: number; // number of the vertex in the draw
  vertex: Vertex;
  table: Vertices;
  chosen: boolean;
  move: Move;
}

function Row({ at, vertex, table, chosen, move }: RowProps) {
  const thread = table.thread + Math.floor((at - table.first) / kLanes);
  return (
    <tr class={chosen ? "chosen" : ""} data-vertex={at}>
      <td><button onClick={() => move({ view: "shader", stage: "vertex", thread, lane: at % kLanes, step: 0 })} title={`lane ${at % kLanes} of vertex thread ${thread}`}>debug {at}</button></td>
      <td>{vertex.index}</td>
      <td>{vertex.instance}</td>
      {vertex.attributes.map((words, n) => <td key={n}>{attributeValue(table.attributes[n]!, words)}</td>)}
      {!table.geometry && (
        <>
          <td>{vertex.clip.map((one) => number(one)).join(" ")}</td>
          <td>{vertex.screen.map((one) => number(one, 7)).join(" ")}</td>
          <td>{number(vertex.depth)}</td>
          <td>{number(vertex.reciprocal_w)}</td>
          {vertex.point_size !== null && <td>{number(vertex.point_size)}</td>}
          {vertex.varyings.map((one, n) => <td key={n}>{word(one, "float")}</td>)}
        </>
      )}
    </tr>
  );
}

function Heads({ table }: { table: Vertices }) {
  const first = table.vertices[0];
  return (
    <tr>
      <th>vertex</th>
      <th title="Which element of the buffers">element</th>
      <th>instance</th>
      {table.attributes.map((one) => <th key={one.number} title={attributeText(one)}>attribute {one.number}</th>)}
      {!table.geometry && (
        <>
          <th title="Xc Yc Zc Wc of the coordinate program; inside if all of X, Y and Z lie between -W and W, in Vulkan Z above 0">clip position</th>
          <th title="Pixels from the first row of the frame">screen x y</th>
          <th title="Of the viewport">depth</th>
          <th>1/Wc</th>
          {first?.point_size !== null && first !== undefined && <th>point size</th>}
          {table.varyings.map((one, n) => <th key={n} title={`component ${n}, which the fragment program takes by its ldvary ${n}`}>varying {n}{interpolation(one) && <div>{interpolation(one)}</div>}</th>)}
        </>
      )}
    </tr>
  );
}

function VertexTable({ place, draw, move }: { place: Place; draw: Draw; move: Move }) {
  const chosen = place.vertex ?? 0;
  const first = Math.floor(chosen / kVertices) * kVertices;
  const answer = useAnswer(`${place.job} ${draw.number} ${first}`, (signal) => ask<Vertices>("vertices", { job: place.job, draw: draw.number, first, count: kVertices }, signal));
  const table = answer.value;
  const go = (to: number) => move({ vertex: Math.min(Math.max(to, 0), Math.max(draw.vertices - 1, 0)) });
  return (
    <>
      <div class="bar">
        <button disabled={first === 0} onClick={() => go(first - kVertices)}>before</button>
        <label>Vertex <input id="vertex" type="number" min={0} max={Math.max(draw.vertices - 1, 0)} value={chosen} onChange={(event) => go(Number(event.currentTarget.value))} /></label>
        <button disabled={first + kVertices >= draw.vertices} onClick={() => go(first + kVertices)}>behind</button>
        <span class="faint">of {draw.vertices}; those that no visible primitive uses are left out</span>
      </div>
      {answer.error && <p class="bad">{answer.error}</p>}
      {!answer.error && !table && <p class="faint">The vertices are shaded ...</p>}
      {table?.problem && <p class="bad">{table.problem}</p>}
      {table?.geometry && <p class="faint">A geometry program follows: positions and varyings are its own.</p>}
      {table && (
        <>
          <ul class="state">
            {table.attributes.map((one) => <li key={one.number}>attribute {one.number}: {attributeText(one)}</li>)}
          </ul>
          <div class="scroll">
            <table class="numbers vertices" id="vertices">
              <thead><Heads table={table} /></thead>
              <tbody>
                {table.vertices.map((vertex, n) => <Row key={n} at={table.first + n} vertex={vertex} table={table} chosen={place.vertex === table.first + n} move={move} />)}
              </tbody>
            </table>
          </div>
        </>
      )}
    </>
  );
}

export function DrawParts({ draw, place, move }: { draw: Draw; place: Place; move: Move }) {
  return (
    <section class="draw-parts">
      <h2>Draw {draw.number}</h2>
      <ul class="state">
        <li>{draw.vertices} vertices are shaded, {draw.primitives} primitives stand in {draw.entries} entries of tile lists</li>
        {draw.programs.map((program) => (
          <li key={program.stage}>
            {program.stage} program {program.code}{" "}
            <button onClick={() => move({ view: "program", code: Number(program.code) })}>explain</button>
          </li>
        ))}
        {draw.state.map((line) => <li key={line}>{line}</li>)}
      </ul>
      <h2>Textures</h2>
      <div id="textures"><Textures place={place} draw={draw} /></div>
      <h2>Vertices</h2>
      <VertexTable draw={draw} place={place} move={move} />
    </section>
  );
}
