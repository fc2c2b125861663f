import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "./api";
import type { Explanation, Job, Steps, Time } from "./api";
import { useAnswer } from "./address";
import type { Place } from "./address";
import { conditionOf, firstIn, kConditionHelp } from "./conditions";
import { formOf, word } from "./text";
import type { Form } from "./text";
import { TextureView } from "./texture";

/// Instructions that are asked for at a time.
const kWindow = 512;
/// The same where a condition is looked for.
const kWideWindow = 2048;

const kStages: Record<Job["kind"], string[]> = {
  bin: ["coordinate", "geometry"],
  render: ["fragment", "vertex", "geometry"],
  compute: ["compute"],
  tfu: [],
  user: [],
};

interface State {
  registers: number[][];
  flags: number[];
  changed: Set<number>;
}

/// Registers after a step; -1: before the first one.
function stateAfter(steps: Steps, step: number): State {
  const registers = steps.initial.map((lanes) => lanes);
  let flags = steps.initial_flags;
  let changed = new Set<number>();
  for (let n = 0; n <= step && n < steps.steps.length; ++n) {
    const one = steps.steps[n]!;
    changed = new Set();
    for (const [register, lanes] of one.changed) {
      registers[register] = lanes;
      changed.add(register);
    }
    flags = one.flags;
  }
  return { registers, flags, changed };
}

interface Props {
  job: Job;
  place: Place;
  time: Time | undefined;
  move: (change: Partial<Place>) => void;
}

export function Shader({ job, place, time, move }: Props) {
  const [form, setForm] = useState<Form>("auto");
  const [onlyUsed, setOnlyUsed] = useState(true);
  const stages = kStages[job.kind];
  const ofPixel = place.pixel !== undefined && place.stage === "fragment";
  const thread = place.thread ?? 0;
  const first = Math.floor(place.step / kWindow) * kWindow;
  const key = stages.includes(place.stage) ? [place.patch, job.number, place.stage, thread, first, ofPixel ? [place.layer, place.sample, ...place.pixel!] : ""].join(" ") : undefined;
  const askSteps = (from: number, count: number, signal?: AbortSignal) =>
    ask<Steps>("steps", {
      job: job.number, stage: place.stage, thread, first: from, count,
      ...(ofPixel ? { layer: place.layer, sample: place.sample, x: place.pixel![0], y: place.pixel![1] } : {}),
    }, signal);
  const answer = useAnswer(key, (signal) => askSteps(first, kWindow, signal));
  const steps = answer.value;
  const explained = useAnswer(steps && `${place.patch} ${job.number} ${steps.program}`, (signal) => ask<Explanation>("explain", { job: job.number, code: Number(steps!.program) }, signal));
  const rules = useMemo(() => {
    const broken = new Map<number, string[]>();
    explained.value?.instructions.forEach((one, n) => {
      const notes = one.notes.filter((note) => /^(undefined|hardly-meant):/.test(note));
      if (notes.length > 0) broken.set(n, notes);
    });
    return broken;
  }, [explained.value]);
  const [until, setUntil] = useState("");
  const [found, setFound] = useState("");
  const [watched, setWatched] = useState("");
  const at = place.step - first;
  const state = useMemo(() => steps && stateAfter(steps, at), [steps, at]);
  const used = useMemo(() => {
    const set = new Set<number>();
    for (const step of steps?.steps ?? []) for (const [register] of step.changed) set.add(register);
    steps?.initial.forEach((lanes, n) => {
      if (lanes.some((lane) => lane !== 0)) set.add(n);
    });
    return set;
  }, [steps]);
  const chosen = useRef<HTMLButtonElement>(null);
  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest" }), [place.step, steps]);
  if (stages.length === 0) return <p>Jobs of this kind run no programs here.</p>;
  const go = (step: number) => move({ step: Math.min(Math.max(step, 0), Math.max((steps?.executed ?? 1) - 1, 0)) });
  const run = async () => {
    if (!steps) return;
    const condition = conditionOf(until, steps.registers, new Set(rules.keys()));
    if (typeof condition === "string") return setFound(condition);
    setFound("it runs ...");
    try {
      for (let from = place.step + 1; from < steps.executed; ) {
        const start = Math.floor(from / kWideWindow) * kWideWindow;
        const at = firstIn(await askSteps(start, kWideWindow), start, from, condition);
        if (at !== undefined) {
          setFound("");
          return move({ step: at });
        }
        from = start + kWideWindow;
      }
      setFound("never from here on");
    } catch (error) {
      setFound(String(error));
    }
    return undefined;
  };
  const pinned = watched.split(/[\s,]+/).filter((name) => name !== "");
  const predicted = time?.programs?.find((program) => program.stage === place.stage && program.code === steps?.program);
  return (
    <div>
      <div class="bar">
        <select aria-label="Stage" value={place.stage} onChange={(event) => move({ stage: event.currentTarget.value, thread: 0, step: 0 })}>
          {stages.map((stage) => <option>{stage}</option>)}
        </select>
        <label>
          Thread <input id="thread" type="number" min={0} max={steps?.threads ? steps.threads - 1 : undefined} value={thread}
            onChange={(event) => move({ thread: Number(event.currentTarget.value), step: 0 })} />
        </label>
        <span class="faint">{ofPixel ? `of the tile of pixel ${place.pixel!.join(",")}` : "of the job"}</span>
        <button id="back" onClick={() => go(place.step - 1)} disabled={place.step === 0} title="p">step back</button>
        <button id="forward" onClick={() => go(place.step + 1)} disabled={!steps || place.step + 1 >= steps.executed} title="n">step</button>
        <button onClick={() => go(0)}>start</button>
        <button onClick={() => go((steps?.executed ?? 1) - 1)}>end</button>
        <label>
          Lane <input id="lane" type="number" min={0} max={15} value={place.lane} onInput={(event) => move({ lane: Number(event.currentTarget.value) & 15 })} />
        </label>
        <select aria-label="Form of values" value={form} onChange={(event) => setForm(event.currentTarget.value as Form)}>
          {["auto", "float", "hex", "int", "unsigned"].map((one) => <option>{one}</option>)}
        </select>
        <form onSubmit={(event) => { event.preventDefault(); void run(); }}>
          <input id="until" aria-label="Run until" placeholder="run until ..." title={kConditionHelp} value={until} onInput={(event) => setUntil(event.currentTarget.value)} />
          <button id="run" disabled={!steps || until === ""}>run</button>
        </form>
        <input id="watch" aria-label="Registers to watch" placeholder="watch rf5, r0 ..." value={watched} onInput={(event) => setWatched(event.currentTarget.value)} />
        <button aria-pressed={onlyUsed} onClick={() => setOnlyUsed(!onlyUsed)}>only registers in use</button>
        {steps && <span class="numbers" id="at">{place.step + 1} of {steps.executed}</span>}
        {steps && <button onClick={() => move({ view: "program", code: Number(steps.program) })} title="What its words tell, and edits">program</button>}
        {found && <span id="found" class="bad">{found}</span>}
      </div>
      {answer.error && <p class="bad">{answer.error}</p>}
      {!answer.error && !steps && <p class="faint">The thread runs ...</p>}
      {steps?.error && <p class="bad">The thread hangs: {steps.error}</p>}
      {steps && state && (
        <div class="shader">
          <div class="code" role="listbox" aria-label="Instructions">
            {steps.steps.map((step, n) => {
              const cost = predicted?.at[step.index];
              return (
                <button key={n} class={`step numbers ${rules.has(step.index) ? "broken" : ""}`} title={rules.get(step.index)?.join("; ")} role="option" aria-selected={n === at} ref={n === at ? chosen : null} onClick={() => go(first + n)}>
                  <span class="faint">{step.index}</span>
                  <span>{step.text.replace(/ {2,}/g, "  ")}</span>
                  <span class="faint" title="predicted: clocks of stalls for each time that it issued, over the whole job">
                    {cost && cost[0] > 0 && cost[1] > 0 ? `+${(cost[1] / cost[0]).toFixed(1)}` : ""}
                  </span>
                </button>
              );
            })}
          </div>
          <pre class="detail" id="detail">{steps.steps[at]?.detail ?? ""}</pre>
          <div class="registers">
            <table class="numbers">
              <thead>
                <tr>
                  <th />
                  {Array.from({ length: 16 }, (_, lane) => <th key={lane} class={lane === place.lane ? "changed" : ""}>{lane}</th>)}
                </tr>
              </thead>
              <tbody>
                {steps.flags.map((name, n) => (
                  <tr key={name}>
                    <th>{name}</th>
                    {Array.from({ length: 16 }, (_, lane) => <td key={lane}>{((state.flags[n] ?? 0) >> lane) & 1}</td>)}
                  </tr>
                ))}
                {[...steps.registers.keys()].sort((a, b) => Number(pinned.includes(steps.registers[b]!)) - Number(pinned.includes(steps.registers[a]!)) || a - b).map((n) => {
                  const name = steps.registers[n]!;
                  return onlyUsed && !used.has(n) && !pinned.includes(name) ? null : (
                    <tr key={name} data-register={name} class={`${state.changed.has(n) ? "changed" : ""} ${pinned.includes(name) ? "pinned" : ""}`}>
                      <th>{name}</th>
                      {state.registers[n]!.map((value, lane) => <td key={lane}>{word(value, form === "auto" ? formOf(state.registers[n]!) : form)}</td>)}
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        </div>
      )}
      {steps && steps.textures.length > 0 && (
        <section>
          <h2>Textures that it looks up</h2>
          {steps.textures.map((words) => <TextureView key={words.join(" ")} job={job.number} words={words} />)}
        </section>
      )}
    </div>
  );
}
