// A program as its words tell it: what it costs, which rules it breaks, what would be better; and its edits.
import { useMemo, useState } from "preact/hooks";
import { ask } from "./api";
import type { Capture, Draws, Explanation, Job, Time } from "./api";
import { useAnswer } from "./address";
import type { Place } from "./address";
import { diff } from "./diff";
import type { DiffLine } from "./diff";
import { hex } from "./text";

interface Props {
  job: Job;
  place: Place;
  draws: Draws | undefined;
  other: string | null;
  time: Time | undefined;
  move: (change: Partial<Place>) => void;
}

/// Stage and address of each program of the job.
function programsOf(job: Job, draws: Draws | undefined, time: Time | undefined): Map<number, string> {
  const programs = new Map<number, string>();
  for (const draw of draws?.draws ?? []) for (const { stage, code } of draw.programs) programs.set(Number(code), stage);
  for (const { stage, code } of time?.programs ?? []) if (!programs.has(Number(code))) programs.set(Number(code), stage);
  const dispatched = job.kind === "compute" ? /program (0x[0-9a-f]{8})/.exec(job.summary) : null;
  if (dispatched) programs.set(Number(dispatched[1]), "compute");
  return programs;
}

/// The lines of edits with another one for an address; without any if the text is empty.
export function edited(patch: string, address: number, text: string): string {
  const others = patch.split("\n").filter((line) => line !== "" && Number(line.split(" ")[0]) !== address);
  return (text === "" ? others : [...others, `${hex(address)} ${text}`]).join("\n");
}

function Edit({ address, text, place, move, close }: { address: number; text: string; place: Place; move: Props["move"]; close: () => void }) {
  return (
    <form class="edit" onSubmit={(event) => {
      event.preventDefault();
      const value = String(new FormData(event.currentTarget as HTMLFormElement).get("text")).trim();
      move({ patch: edited(place.patch, address, value === text ? "" : value) });
      close();
    }}>
      <input name="text" aria-label="Another instruction" defaultValue={text} autofocus spellcheck={false} />
      <button>replay with it</button>
      <button type="button" onClick={close}>cancel</button>
    </form>
  );
}

/// The same program in the other capture: that of the same stage in the same draw, or dispatch.
function useOther(job: Job, place: Place, draws: Draws | undefined, stage: string | undefined, code: number | undefined, isWanted: boolean) {
  const side = 1 - place.other;
  const capture = useAnswer(isWanted ? `other ${side}` : undefined, (signal) => ask<Capture>("capture", { other: side }, signal));
  const there = useAnswer(isWanted ? `other ${side} ${job.number}` : undefined, (signal) => ask<Draws>("job", { job: job.number, other: side }, signal));
  const draw = draws?.draws.find((one) => (place.draw === undefined || one.number === place.draw) && one.programs.some((program) => Number(program.code) === code));
  const dispatched = /program (0x[0-9a-f]{8})/.exec(capture.value?.jobs[job.number - 1]?.summary ?? "")?.[1];
  const found = stage === "compute" ? dispatched : there.value?.draws[draw?.number ?? 0]?.programs.find((program) => program.stage === stage)?.code;
  return useAnswer(isWanted && found !== undefined ? `other ${side} ${job.number} ${found}` : undefined, (signal) => ask<Explanation>("explain", { job: job.number, code: Number(found), other: side }, signal));
}

/// Of a rule that the program breaks.
const isBroken = (note: string) => /^(undefined|hardly-meant):/.test(note);

export function Program({ job, place, draws, other, time, move }: Props) {
  const [chosen, setChosen] = useState<number>();
  const programs = programsOf(job, draws, time);
  const code = place.code !== undefined && programs.has(place.code) ? place.code : [...programs.keys()].at(-1);
  const answer = useAnswer(code === undefined ? undefined : [place.patch, job.number, code].join(" "), (signal) => ask<Explanation>("explain", { job: job.number, code }, signal));
  const there = useOther(job, place, draws, programs.get(code ?? 0), code, other !== null);
  const lines: DiffLine[] = useMemo(() => {
    const here = answer.value?.instructions.map((one) => one.text) ?? [];
    return there.value ? diff(here, there.value.instructions.map((one) => one.text)) : here.map((_, n) => ({ here: n, there: n }));
  }, [answer.value, there.value]);
  if (code === undefined) return <p>The job runs no programs.</p>;
  const explanation = answer.value;
  const stalled = (clocks: number, onPath: boolean) => (!onPath ? "?" : clocks < 0.5 ? "" : `+${clocks.toFixed(1)}`);
  return (
    <div>
      <div class="bar">
        <select id="program" aria-label="Program" value={code} onChange={(event) => move({ code: Number(event.currentTarget.value) })}>
          {[...programs].map(([address, stage]) => <option key={address} value={address}>{stage} {hex(address)}</option>)}
        </select>
        <span class="faint">without a run; ? is beside the way that is predicted. A click on an instruction edits it.</span>
      </div>
      {answer.error && <p class="bad">{answer.error}</p>}
      {!answer.error && !explanation && <p class="faint">...</p>}
      {explanation && (
        <>
          <ul class="state" id="summary">{explanation.summary.trim().split("\n").map((line) => <li key={line}>{line}</li>)}</ul>
          {explanation.instructions.some((one) => one.notes.some(isBroken)) && (
            <ul class="bad" id="broken">
              {explanation.instructions.map((one, n) => one.notes.filter(isBroken).map((note) => <li key={`${n} ${note}`}>instruction {n}: {note}</li>))}
            </ul>
          )}
          {explanation.advice.length > 0 && <h2>Advice</h2>}
          <ul class="state" id="advice">{explanation.advice.map((line) => <li key={line}>{line}</li>)}</ul>
          <table class="program numbers">
            <thead>
              <tr><th /><th title="clocks that it stalls each time it issues, if its thread has the QPU alone">alone</th><th title="the same with all threads">all</th><th /></tr>
            </thead>
            <tbody>
              {lines.map((line, row) => {
                const n = line.here;
                if (n === undefined)
                  return (
                    <tr key={row} class="removed" title={`in ${other} alone`}>
                      <th>-</th><td /><td /><td class="text">{there.value?.instructions[line.there!]?.text}</td>
                    </tr>
                  );
                const one = explanation.instructions[n];
                return one && (
                <tr key={row} data-index={n} class={line.there === undefined ? "added" : ""}>
                  <th>{n}</th>
                  <td>{stalled(one.alone, one.on_path)}</td>
                  <td>{stalled(one.all, one.on_path)}</td>
                  <td class="text">
                    {chosen === n
                      ? <Edit address={code + 8 * n} text={one.text.replace(/ {2,}/g, " ")} place={place} move={move} close={() => setChosen(undefined)} />
                      : <button class="plain" onClick={() => setChosen(n)}>{one.text}</button>}
                    {one.notes.map((note) => <div key={note} class={isBroken(note) ? "bad" : "faint"}>{note}</div>)}
                  </td>
                </tr>
                );
              })}
            </tbody>
          </table>
        </>
      )}
    </div>
  );
}
