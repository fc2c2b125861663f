import { useState } from "preact/hooks";
import { ask } from "./api";
import { useAnswer } from "./address";

/// Lines on the screen at a time.
const kWindow = 2000;

/// What a listing says of what it cannot read.
const kSuspicious = /unknown|invalid|no instruction|not mapped|\.word|runs away|reserved/i;

export function Listing({ job }: { job: number }) {
  const [first, setFirst] = useState(0);
  const [wanted, setWanted] = useState("");
  const answer = useAnswer(String(job), (signal) => ask<{ lines: string[]; is_cut: boolean }>("listing", { job }, signal));
  if (answer.error) return <p class="bad">{answer.error}</p>;
  if (!answer.value) return <p class="faint">...</p>;
  const all = answer.value.lines;
  const lines = wanted ? all.filter((line) => line.toLowerCase().includes(wanted.toLowerCase())) : all;
  return (
    <div>
      <div class="bar">
        <label>Find <input type="search" value={wanted} onInput={(event) => { setWanted(event.currentTarget.value); setFirst(0); }} /></label>
        <button disabled={first === 0} onClick={() => setFirst(Math.max(first - kWindow, 0))}>before</button>
        <span class="numbers">{lines.length === 0 ? "no lines" : `${first + 1} to ${Math.min(first + kWindow, lines.length)} of ${lines.length}`}</span>
        <button disabled={first + kWindow >= lines.length} onClick={() => setFirst(first + kWindow)}>behind</button>
        {answer.value.is_cut && <span class="bad">the listing is longer than what is shown; v3demu decode prints all of it</span>}
      </div>
      <pre class="listing" id="listing">
        {lines.slice(first, first + kWindow).map((line, n) => <div key={n} class={kSuspicious.test(line) ? "suspicious" : ""}>{line || " "}</div>)}
      </pre>
    </div>
  );
}
