// The place in the capture, which stands in the address: #job=3&draw=7&pixel=120,80
import { useEffect, useState } from "preact/hooks";
import { context } from "./api";

export const kViews = ["picture", "shader", "listing", "program", "memory", "chip", "profile"] as const;
export type View = (typeof kViews)[number];
export const kMaps = ["fragments", "shaded", "quads", "removed", "samples", "lists"] as const;
export type HeatMap = (typeof kMaps)[number];
export interface Place {
  job: number;
  draw?: number | undefined; // undefined: after all of them
  layer: number;
  buffer: number; // 0 to 7: colours, 9: depth, 10: stencil
  sample: number;
  pixel?: [number, number] | undefined;
  view: View;
  stage: string; // of the shader view, where no pixel is meant
  thread?: number | undefined;
  lane: number;
  step: number;
  map?: HeatMap | undefined; // in place of the buffer
  code?: number | undefined; // address of the program that is explained
  address?: number | undefined; // of the memory view
  vertex?: number | undefined; // of the draw's table
  other: number; // 1: the capture that this one is compared with
  patch: string; // lines "ADDRESS TEXT": edited instructions
}

const kStart: Place = { job: 1, layer: 0, buffer: 0, sample: 0, view: "picture", stage: "fragment", lane: 0, step: 0, other: 0, patch: "" };

export function parse(hash: string): Place {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string): number | undefined => {
    const text = words.get(name);
    return text !== null && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  };
  const pixel = /^(\d{1,5}),(\d{1,5})$/.exec(words.get("pixel") ?? "");
  const view = words.get("view");
  return {
    job: number("job") ?? kStart.job,
    draw: number("draw"),
    layer: number("layer") ?? 0,
    buffer: number("buffer") ?? 0,
    sample: number("sample") ?? 0,
    pixel: pixel ? [Number(pixel[1]), Number(pixel[2])] : undefined,
    view: kViews.find((one) => one === view) ?? "picture",
    stage: words.get("stage") ?? kStart.stage,
    thread: number("thread"),
    lane: number("lane") ?? 0,
    step: number("step") ?? 0,
    map: kMaps.find((one) => one === words.get("map")),
    code: number("code"),
    address: number("address"),
    vertex: number("vertex"),
    other: words.get("other") === "1" ? 1 : 0,
    patch: words.get("patch") ?? "",
  };
}

export function format(place: Place): string {
  const words = new URLSearchParams({ job: String(place.job) });
  const add = (name: keyof Place) => {
    const value = place[name];
    if (value !== undefined && value !== kStart[name]) words.set(name, String(value));
  };
  for (const name of ["draw", "layer", "buffer", "sample", "pixel", "view", "stage", "thread", "lane", "step", "map", "code", "address", "vertex", "other", "patch"] as const) add(name);
  return "#" + words.toString().replace(/%2C/g, ",");
}

/// The place, and a function that moves there.
export function usePlace(): [Place, (change: Partial<Place>) => void] {
  const [place, setPlace] = useState(() => parse(location.hash));
  useEffect(() => {
    const moved = () => setPlace(parse(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const move = (change: Partial<Place>) => {
    const next = { ...parse(location.hash), ...change };
    // Steps and lanes are no places to go back to.
    if (Object.keys(change).every((name) => name === "step" || name === "lane")) {
      history.replaceState(null, "", format(next));
      setPlace(next);
    } else {
      location.hash = format(next);
    }
  };
  return [place, move];
}

/// What a question has for an answer; asked anew when `key` changes.
export function useAnswer<T>(asked: string | undefined, question: (signal: AbortSignal) => Promise<T>): { value?: T; error?: string } {
  const key = asked === undefined ? undefined : `${context()} ${asked}`;
  const [answer, setAnswer] = useState<{ key?: string; value?: T; error?: string }>({});
  useEffect(() => {
    if (key === undefined) return undefined;
    const abort = new AbortController();
    question(abort.signal).then(
      (value) => setAnswer({ key, value }),
      (error: Error) => {
        if (!abort.signal.aborted) setAnswer({ key, error: error.message });
      },
    );
    return () => abort.abort();
  }, [key]);
  if (key === undefined || answer.key !== key) return {};
  return answer;
}
