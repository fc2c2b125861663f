// Tables that are sorted by a click on a column, and the bars in them.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count, issueClocks } from "./model";
import type { Instruction, ShaderUse } from "./model";

export interface Column<Row> {
  title: string;
  text: (row: Row) => ComponentChildren;
  key?: (row: Row) => number | string; // what it is sorted by
  left?: boolean;
}

interface Props<Row> {
  name: string;
  columns: Column<Row>[];
  rows: Row[];
  by?: number; // the column that it is sorted by at first, the largest on top; otherwise as rows are
  chosen?: Row | undefined;
  click?: ((row: Row) => void) | undefined;
}

/// Rows that are shown at first.
const kShort = 200;

export function Table<Row>({ name, columns, rows, by: first, chosen, click }: Props<Row>) {
  const [by, setBy] = useState(first);
  const [down, setDown] = useState(true);
  const [all, setAll] = useState(false);
  const order = useMemo(() => {
    const key = by === undefined ? undefined : columns[by]?.key;
    if (!key) return rows;
    return [...rows].sort((a, b) => {
      const x = key(a);
      const y = key(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
  }, [rows, by, down]);
  const sort = (n: number) => {
    setDown(n === by ? !down : !columns[n]?.left);
    setBy(n);
  };
  return (
    <div class="scroll" data-table={name}>
      <table class="rows">
        <thead>
          <tr>
            {columns.map((column, n) => (
              <th key={n} class={column.left ? "left" : ""} aria-sort={n !== by ? "none" : down ? "descending" : "ascending"}>
                {column.key ? <button class="plain" onClick={() => sort(n)}>{column.title}{n === by ? (down ? " ▾" : " ▴") : ""}</button> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {order.slice(0, all ? order.length : kShort).map((row, n) => (
            <tr key={n} class={`${click ? "link" : ""} ${row === chosen ? "chosen" : ""}`} tabIndex={click ? 0 : -1} onClick={() => click?.(row)}
              onKeyDown={(event) => event.key === "Enter" && event.target === event.currentTarget && click?.(row)}>
              {columns.map((column, m) => <td key={m} class={column.left ? "left" : ""}>{column.text(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {!all && order.length > kShort && <p><button onClick={() => setAll(true)}>show all {count(order.length)}</button></p>}
    </div>
  );
}

/// Shares of a whole, each with a colour of page.css.
export function Bar({ parts }: { parts: [number, string][] }) {
  return <span class="parts">{parts.map(([share, paint], n) => share > 0 && <i key={n} style={{ width: `${(100 * Math.min(share, 1)).toFixed(2)}%`, background: `var(--${paint})` }} />)}</span>;
}

export function Legend({ entries }: { entries: [string, string][] }) {
  return <span class="legend">{entries.map(([name, paint]) => <span key={name}><i style={{ background: `var(--${paint})` }} />{name}</span>)}</span>;
}

/// The colour of a kind of stall.
export const stallPaint = (stall: number) => `stall${stall % 8}`;

/// Issue and stalls, as shares of a whole.
export function timeParts(cost: ShaderUse | Instruction | { instructions: number; stalls: number[] }, whole: number): [number, string][] {
  return [[issueClocks(cost) / whole, "issue"], ...cost.stalls.map((clocks, n): [number, string] => [clocks / whole, stallPaint(n)])];
}
