// Memory as the job finds it, by its address, and who changed a word last.
import { ask } from "./api";
import type { Capture, MemoryView } from "./api";
import { useAnswer } from "./address";
import type { Place } from "./address";
import { goToJob } from "./tree";
import { hex, word } from "./text";

const kWordsOfRow = 8;

interface Props {
  capture: Capture;
  place: Place;
  move: (change: Partial<Place>) => void;
}

function Writer({ view, capture, move }: { view: MemoryView; capture: Capture; move: Props["move"] }) {
  const job = capture.jobs[view.job - 1];
  if (view.by === "nobody" || !job) return <span>it is what the first job of the client found</span>;
  const button = <button onClick={() => move(goToJob(job))}>job {job.number}: {job.kind}</button>;
  return view.by === "job" ? <span>changed last by {button}</span> : <span>changed last by the program (or what is not captured), after {button} had started</span>;
}

export function Memory({ capture, place, move }: Props) {
  const address = place.address;
  const answer = useAnswer(address === undefined ? undefined : `${place.job} ${address}`, (signal) => ask<MemoryView>("memory", { job: place.job, address }, signal));
  const view = answer.value;
  const rows = view ? Array.from({ length: view.words.length / kWordsOfRow }, (_, n) => n * kWordsOfRow) : [];
  const first = view?.words[0];
  return (
    <div>
      <form class="bar" onSubmit={(event) => {
        event.preventDefault();
        const value = Number(new FormData(event.currentTarget as HTMLFormElement).get("address"));
        if (Number.isInteger(value) && value >= 0 && value < 2 ** 32) move({ address: value });
      }}>
        <label>Address <input id="address" name="address" key={address} defaultValue={address === undefined ? "" : hex(address)} placeholder="0x00020000" /></label>
        <button>show</button>
        <button type="button" disabled={address === undefined} onClick={() => move({ address: Math.max(address! - 4 * 128, 0) })}>before</button>
        <button type="button" disabled={address === undefined} onClick={() => move({ address: Math.min(address! + 4 * 128, 2 ** 32 - 4) })}>behind</button>
        <span class="faint">as job {place.job} finds it</span>
      </form>
      {answer.error && <p class="bad">{answer.error}</p>}
      {address === undefined && <p class="faint">Addresses stand in the control list, in shaders' values and beside textures.</p>}
      {view && (
        <>
          <p id="writer">
            <b class="numbers">{hex(view.address)}</b> {first === null || first === undefined ? "is not mapped" : `${hex(first)}, ${word(first, "float")} as a float`}; <Writer view={view} capture={capture} move={move} />
          </p>
          <table class="numbers memory">
            <tbody>
              {rows.map((row) => (
                <tr key={row}>
                  <th>{hex(view.address + 4 * row)}</th>
                  {view.words.slice(row, row + kWordsOfRow).map((value, n) => (
                    <td key={n} class={row + n === 0 ? "changed" : ""}>
                      <button class="plain" onClick={() => move({ address: view.address + 4 * (row + n) })}>{value === null ? "--------" : word(value, "hex")}</button>
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </div>
  );
}
