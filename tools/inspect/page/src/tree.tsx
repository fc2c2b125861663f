import { useEffect, useRef } from "preact/hooks";
import type { Capture, Draw, Draws, Job, Time } from "./api";
import type { Place } from "./address";
import { duration } from "./text";

export function timeText(time: Time | undefined): string {
  if (!time) return "";
  return time.ns === undefined ? "no time" : duration(time.ns);
}

function drawText(draw: Draw): string {
  const instances = draw.instances > 1 ? ` x ${draw.instances}` : "";
  return `${draw.number}: ${draw.mode}, ${draw.count}${draw.indexed ? " indices" : " vertices"}${instances}`;
}

/// How much longer this takes than that of the other capture.
function Difference({ here, there }: { here: number | undefined; there: number | undefined }) {
  if (here === undefined || there === undefined || there === 0) return null;
  const percent = (100 * (here - there)) / there;
  return <span class={Math.abs(percent) < 1 ? "faint" : percent > 0 ? "bad" : "good"}> {percent > 0 ? "+" : ""}{percent.toFixed(1)} %</span>;
}

interface Props {
  capture: Capture;
  place: Place;
  draws: Draws | undefined;
  times: Map<number, Time>;
  otherTimes: Map<number, Time>; // of the capture that it is compared with
  move: (change: Partial<Place>) => void;
}

/// @param place  where its user is: who looks at memory or the chip goes on to
export function goToJob(job: Pick<Job, "number" | "kind">, place?: Place): Partial<Place> {
  const stays = place?.view === "memory" || place?.view === "chip" ? { view: place.view } : {};
  return {
    job: job.number,
    draw: undefined,
    thread: undefined,
    layer: 0,
    step: 0,
    lane: 0,
    view: job.kind === "render" ? "picture" : job.kind === "compute" ? "shader" : "listing",
    stage: job.kind === "compute" ? "compute" : job.kind === "bin" ? "coordinate" : "fragment",
    pixel: undefined,
    vertex: undefined,
    ...stays,
  };
}

export function Timeline({ capture, place, times, move }: Props) {
  return (
    <div class="timeline" role="tablist" aria-label="Jobs by predicted time">
      {capture.jobs.map((job) => {
        const time = times.get(job.number);
        const title = `job ${job.number}: ${job.kind}, ${time ? timeText(time) : "not predicted yet"}${time?.bound ? `, bound by ${time.bound}` : ""}`;
        return (
          <button key={job.number} role="tab" class={job.kind} style={{ flexGrow: Math.max(time?.ns ?? 1000, 1) }} title={title} aria-label={title}
            aria-selected={job.number === place.job} tabIndex={-1} onClick={() => move(goToJob(job, place))} />
        );
      })}
    </div>
  );
}

export function Tree({ capture, place, draws, times, otherTimes, move }: Props) {
  const list = useRef<HTMLElement>(null);
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [place.job, place.draw, draws]);
  return (
    <nav class="tree" ref={list} aria-label="Jobs and draws">
      <ul>
        {capture.jobs.map((job) => {
          const time = times.get(job.number);
          const open = job.number === place.job;
          return (
            <li key={job.number}>
              <button class="row" data-job={job.number} aria-selected={open && place.draw === undefined} onClick={() => move(goToJob(job, place))}>
                <span>
                  <b>{job.number}</b> {job.kind} <span class="faint">{job.summary}</span>
                </span>
                <span class="faint" title={time?.bound ? `bound by ${time.bound}` : (time?.why_not ?? "")}>
                  {timeText(time)}
                  <Difference here={time?.ns} there={otherTimes.get(job.number)?.ns} />
                  {time?.bound ? ` ${time.bound}` : ""}
                </span>
              </button>
              {open && draws && draws.draws.length > 0 && (
                <ul>
                  {draws.draws.map((draw) => {
                    const clocks = time?.draws?.[draw.number]?.clocks;
                    return (
                      <li key={draw.number}>
                        <button class="row draw" data-draw={draw.number} aria-selected={draw.number === place.draw} onClick={() => move({ draw: draw.number, vertex: undefined })}>
                          <span>{drawText(draw)}</span>
                          <span class="faint" title="clocks of QPUs">{clocks === undefined ? "" : `${clocks} clk`}
                            <Difference here={clocks} there={otherTimes.get(job.number)?.draws?.[draw.number]?.clocks} /></span>
                        </button>
                      </li>
                    );
                  })}
                  {draws.left_out > 0 && <li class="row draw">and {draws.left_out} more</li>}
                </ul>
              )}
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
