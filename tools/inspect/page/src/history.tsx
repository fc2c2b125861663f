import type { ComponentChildren } from "preact";
import { ask } from "./api";
import type { History as Answer, PixelEvent, Sample } from "./api";
import { useAnswer } from "./address";
import type { Place } from "./address";
import { color, number } from "./text";

/// What became of a fragment, in a few words: of the sample that is followed.
export function verdict(event: PixelEvent, sample: number): { text: string; good: boolean } {
  const has = (samples: number | undefined) => (((samples ?? 0) >> sample) & 1) !== 0;
  if (!has(event.coverage)) return { text: `does not cover sample ${sample}`, good: false };
  if (event.failed) return { text: `fails the ${event.failed} test`, good: false };
  const runs = (event.runs ?? []).filter((run) => run.sample < 0 || run.sample === sample);
  if (runs.length === 0) return { text: "its program did not run", good: false };
  const late = runs.flatMap((run) => run.accesses).filter((access) => access.kind === "depth");
  if (!event.tests_early && late.length > 0 && !late.some((access) => has(access.passed))) return { text: "fails the late depth or stencil test", good: false };
  if (!runs.some((run) => has(run.alive))) return { text: "discarded by its program", good: false };
  const writes = runs.flatMap((run) => run.accesses).filter((access) => access.kind === "color");
  if (writes.length === 0) return { text: "writes no colour", good: true };
  return { text: "writes", good: true };
}

function Value({ sample, target }: { sample: Sample; target: number }) {
  const value = sample.colors.find((one) => one.target === target);
  if (!value) return <span>-</span>;
  return (
    <span class="numbers">
      <span class="swatch" style={{ background: color(value.rgba8) }} /> {value.channels.map((channel) => number(channel)).join(" ")}
    </span>
  );
}

/// A value, and below it what became of it, if that is another one.
function Change({ name, before, after, differs }: { name: string; before: ComponentChildren; after: ComponentChildren; differs: boolean }) {
  return (
    <tr>
      <th>{name}</th>
      <td class="numbers">
        <div>{before}</div>
        {differs && <div class="changed">{after}</div>}
      </td>
    </tr>
  );
}

function Both({ before, after }: { before: Sample; after: Sample }) {
  return (
    <table>
      <tbody>
        <Change name="depth" before={number(before.depth)} after={number(after.depth)} differs={before.stored_depth !== after.stored_depth} />
        <Change name="stencil" before={before.stencil} after={after.stencil} differs={before.stencil !== after.stencil} />
        {before.colors.map((one, n) => (
          <Change key={one.target} name={`colour ${one.target}`} before={<Value sample={before} target={one.target} />}
            after={<Value sample={after} target={one.target} />} differs={String(one.words) !== String(after.colors[n]?.words)} />
        ))}
      </tbody>
    </table>
  );
}

const kBuffers: Record<number, string> = { 9: "depth", 10: "stencil", 11: "depth and stencil" };
function title(event: PixelEvent): string {
  const buffer = kBuffers[event.buffer ?? 0] ?? `colour ${event.buffer}`;
  switch (event.kind) {
    case "begin":
      return "The tile begins";
    case "clear":
      return "Cleared";
    case "load":
      return `${buffer} loaded from ${event.address}`;
    case "store":
      return `${buffer} stored to ${event.address}`;
    case "fragment":
      return `Draw ${event.draw}, primitive ${event.primitive}`;
  }
}

function Fragment({ event, place, move }: { event: PixelEvent; place: Place; move: (change: Partial<Place>) => void }) {
  const outcome = verdict(event, place.sample);
  return (
    <div>
      <span class={outcome.good ? "good" : "bad"}>{outcome.text}</span>{" "}
      <span class="faint">
        depth {number(event.depth ?? null)}, {event.back_facing ? "back" : "front"}, {event.tests_early ? "tests early" : "tests late"}
        {event.coverage !== 1 ? `, samples ${event.coverage!.toString(2).padStart(4, "0")}` : ""}
      </span>
      {(event.runs ?? []).map((run) => (
        <div key={run.thread}>
          {run.accesses.map((access, n) => (
            <div key={n} class="numbers">
              program writes {access.kind === "color" ? `colour ${access.target}` : "depth"}: {access.written.map((value) => number(value)).join(" ")}
            </div>
          ))}
          <button class="debug" data-thread={run.thread} aria-pressed={place.view === "shader" && place.thread === run.thread && place.lane === run.lane}
            onClick={() => move({ view: "shader", stage: "fragment", thread: run.thread, lane: run.lane, step: 0 })}>
            debug lane {run.lane} of thread {run.thread}
          </button>
        </div>
      ))}
    </div>
  );
}

export function History({ place, move }: { place: Place; move: (change: Partial<Place>) => void }) {
  const pixel = place.pixel;
  const key = pixel && [place.patch, place.job, place.layer, place.sample, ...pixel].join(" ");
  const answer = useAnswer(key, (signal) =>
    ask<Answer>("history", { job: place.job, layer: place.layer, sample: place.sample, x: pixel![0], y: pixel![1] }, signal),
  );
  if (!pixel) return <p class="faint">Click a pixel of the picture, or press Enter on it: its history comes here.</p>;
  if (answer.error) return <p class="bad">{answer.error}</p>;
  if (!answer.value) return <p class="faint">The tile is drawn again ...</p>;
  const { events, is_cut, message } = answer.value;
  return (
    <section>
      <h2>History of pixel {pixel[0]},{pixel[1]}{place.sample > 0 && `, sample ${place.sample}`}{place.layer > 0 && `, layer ${place.layer}`}</h2>
      {message && <p class="bad">{message}</p>}
      {events.length === 0 && <p>Nothing touches it.</p>}
      {events.map((event, n) => (
        <article key={n} class={`event ${event.draw !== undefined && event.draw === place.draw ? "chosen" : ""}`} data-kind={event.kind}>
          <header>
            <b>{title(event)}</b>
            {event.kind === "fragment" && <button onClick={() => move({ draw: event.draw, vertex: undefined, view: "picture" })}>picture</button>}
            {event.vertices && event.vertices.length > 0 && (
              <button class="corners" title="Its vertices: what their program got and made" onClick={() => move({ draw: event.draw, vertex: event.vertices![0], view: "picture" })}>vertices {event.vertices.join(" ")}</button>
            )}
          </header>
          {event.kind === "fragment" && <Fragment event={event} place={place} move={move} />}
          <Both before={event.before} after={event.after} />
        </article>
      ))}
      {is_cut && <p class="bad">There is more; only what came first is shown.</p>}
    </section>
  );
}
