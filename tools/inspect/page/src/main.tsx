import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, setContext } from "./api";
import type { Capture, Draws, Job, Time } from "./api";
import { format, parse, useAnswer, usePlace } from "./address";
import type { View } from "./address";
import { Chip } from "./chip";
import { History } from "./history";
import { Listing } from "./listing";
import { Memory } from "./memory";
import { Picture } from "./picture";
import { ExportedProfile } from "./profile/export";
import type { Profile } from "./profile/model";
import { ProfileView } from "./profile/view";
import { Program } from "./program";
import { Shader } from "./shader";
import { Timeline, Tree, goToJob } from "./tree";

const kNoSide = -1;

/// Predicted times, one job after the other, that of the chosen one first.
function useTimes(capture: Capture, chosen: number, side: number, patch: string): Map<number, Time> {
  const [times, setTimes] = useState(new Map<number, Time>());
  const [tries, setTries] = useState(0);
  useEffect(() => setTimes(new Map()), [side, patch]);
  useEffect(() => {
    if (side === kNoSide) return undefined;
    const missing = capture.jobs.map((job) => job.number).filter((number) => !times.has(number));
    const next = missing.includes(chosen) ? chosen : missing[0];
    if (next === undefined) return undefined;
    const abort = new AbortController();
    const add = (time: Time) => {
      if (abort.signal.aborted) return;
      if (time.busy) setTries((count) => count + 1);
      else setTimes((known) => new Map(known).set(next, time));
    };
    // What the user looks at comes first.
    const later = setTimeout(() => {
      ask<Time>("time", { job: next, other: side }, abort.signal).then(add, (error: Error) => add({ end: "", why_not: error.message }));
    }, 300);
    return () => {
      clearTimeout(later);
      abort.abort();
    };
  }, [times, chosen, tries]);
  return times;
}

/// The bin job of a frame for its render job, and the other way round.
const otherHalf = (capture: Capture, job: Job, kind: Job["kind"]) =>
  job.kind === kind ? undefined : capture.jobs.find((one) => one.kind === kind && one.client === job.client && one.submission === job.submission);

function Page({ capture }: { capture: Capture }) {
  const [place, move] = usePlace();
  setContext(place.patch, place.other); // before anything below asks
  const job = capture.jobs[place.job - 1];
  const times = useTimes(capture, place.job, place.other, place.patch);
  const otherTimes = useTimes(capture, place.job, capture.other === null ? kNoSide : 1 - place.other, place.patch);
  const answer = useAnswer(`${place.job} ${place.patch}`, (signal) => ask<Draws>("job", { job: place.job }, signal));
  const draws = answer.value;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLInputElement || event.ctrlKey || event.altKey || event.metaKey) return;
      const count = draws?.draws.length ?? 0;
      const next = capture.jobs[place.job];
      const previous = capture.jobs[place.job - 2];
      switch (event.key) {
        case "n":
          return document.getElementById("forward")?.click();
        case "p":
          return document.getElementById("back")?.click();
        case "]":
          if (place.draw !== undefined && place.draw + 1 < count) move({ draw: place.draw + 1, vertex: undefined });
          return undefined;
        case "[":
          if (count > 0) move({ draw: Math.max((place.draw ?? count) - 1, 0), vertex: undefined });
          return undefined;
        case "j":
          if (next) move(goToJob(next, place));
          return undefined;
        case "k":
          if (previous) move(goToJob(previous, place));
          return undefined;
        case "o":
          return document.getElementById("other")?.click();
        case "b":
          return document.getElementById("before")?.click();
        case "1":
          return move({ view: "picture" });
        case "2":
          return move({ view: "shader" });
        case "3":
          return move({ view: "listing" });
        case "4":
          return move({ view: "program" });
        case "5":
          return move({ view: "memory" });
        case "6":
          return move({ view: "chip" });
        case "7":
          return move({ view: "profile" });
      }
      return undefined;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const views: [View, string][] = [["picture", "Picture"], ["shader", "Shader"], ["listing", "Control list"], ["program", "Program"], ["memory", "Memory"], ["chip", "Chip"], ["profile", "Profile"]];
  const props = { capture, place, draws, times, otherTimes, move };
  // Elsewhere it would take the room of instructions and tables.
  const hasHistory = job?.kind === "render" && place.view !== "profile" && (place.view === "picture" || place.pixel !== undefined) && !(place.view === "shader" && place.stage !== "fragment");
  const rendered = job && otherHalf(capture, job, "render");
  const binned = job?.kind === "render" ? otherHalf(capture, job, "bin") : undefined;
  return (
    <>
      <header>
        <h1>{capture.file}</h1>
        {capture.other !== null && (
          <button id="other" title="o: the same place in the other capture" onClick={() => move({ other: 1 - place.other })}>to {capture.other}</button>
        )}
        <span class="faint board" title={capture.description}>{capture.board}: {capture.description}</span>
        <span role="tablist" class="views">
          {views.map(([view, name]) => (
            <button key={view} role="tab" data-view={view} aria-selected={place.view === view} onClick={() => move({ view })}>{name}</button>
          ))}
        </span>
        <span class="keys" title="j k: jobs, [ ]: draws, b: before the draw, 1 to 7: views, o: the other capture, arrows: pixel, n p: steps">keys: j k [ ] b 1..7 n p</span>
      </header>
      <Timeline {...props} />
      <Tree {...props} />
      <main class={hasHistory ? "" : "wide"}>
        {place.patch !== "" && (
          <p class="edits" role="status">
            <b>Edited:</b> {place.patch.split("\n").map((line) => <code key={line}>{line}</code>)}
            <button onClick={() => move({ patch: "" })}>undo all</button>
          </p>
        )}
        {place.view === "profile" && <ProfileView place={place} move={move} />}
        {!job && <p class="bad">There is no job {place.job}.</p>}
        {job && place.view === "picture" && (job.kind === "render" ? <Picture place={place} draws={draws} other={capture.other} move={move} /> : <p>Only render jobs have pictures. {rendered && <button id="rendered" onClick={() => move(goToJob(rendered))}>that of this frame: job {rendered.number}</button>}</p>)}
        {job && place.view === "shader" && <Shader job={job} place={place} time={times.get(job.number)} move={move} />}
        {job && place.view === "program" && <Program job={job} place={place} draws={draws} other={capture.other} time={times.get(job.number)} move={move} />}
        {job && place.view === "memory" && <Memory capture={capture} place={place} move={move} />}
        {job && place.view === "chip" && <Chip job={job} time={times.get(job.number)} />}
        {job && place.view === "listing" && binned && (
          <p>State and draws of this frame are set by the list of its bin job. <button id="binned" onClick={() => move({ ...goToJob(binned), view: "listing" })}>job {binned.number}</button></p>
        )}
        {job && place.view === "listing" && <Listing job={job.number} />}
      </main>
      {hasHistory && <aside aria-label="Pixel history"><History place={place} move={move} /></aside>}
    </>
  );
}

function Start() {
  const [place] = usePlace();
  setContext("", place.other);
  const capture = useAnswer("capture", (signal) => ask<Capture>("capture", {}, signal));
  const last = useRef<Capture>();
  if (capture.value) last.current = capture.value;
  if (capture.error) return <p class="bad">{capture.error}</p>;
  const shown = capture.value ?? last.current; // while that of the other side comes
  if (!shown) return <p>The capture is read ...</p>;
  if (shown.jobs.length === 0) return <p>The capture holds no jobs.</p>;
  if (!new URLSearchParams(location.hash.replace(/^#/, "")).has("job")) {
    const first = shown.jobs.find((job) => job.kind === "render") ?? shown.jobs.find((job) => job.kind === "compute");
    history.replaceState(null, "", format({ ...parse(location.hash), ...(first ? goToJob(first) : {}) }));
  }
  return <Page capture={shown} />;
}

const root = document.getElementById("page")!;
const exported = document.getElementById("profile"); // in a page of v3demu profile
root.textContent = "";
render(exported ? <ExportedProfile profile={JSON.parse(exported.textContent ?? "") as Profile} /> : <Start />, root);
