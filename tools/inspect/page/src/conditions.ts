// Where a thread is to stop: at an instruction, a value, a change or a broken rule.
import type { Step, Steps } from "./api";

export interface Moment {
  step: Step;
  registers: number[][]; // after it
}
export type Condition = (moment: Moment) => boolean;

export const kConditionHelp = "an instruction (17), a value (rf5 > 0.5, rf5[3] = 0x10), a change (rf5 changes), or: hazard";

const kView = new DataView(new ArrayBuffer(4));

/// Floats have a point or an exponent, the others are words: signed if the text is negative.
function valueOf(bits: number, wanted: string): number {
  kView.setUint32(0, bits);
  if (!/^-?0x/i.test(wanted) && /[.e]|inf|nan/i.test(wanted)) return kView.getFloat32(0);
  return wanted.startsWith("-") ? kView.getInt32(0) : bits;
}

const kComparisons: Record<string, (a: number, b: number) => boolean> = {
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

/// A text that says what is wrong, if it is no condition.
export function conditionOf(text: string, names: string[], hazards: Set<number>): Condition | string {
  const words = text.trim();
  if (/^\d+$/.test(words)) return ({ step }) => step.index === Number(words);
  if (words === "hazard") return ({ step }) => hazards.has(step.index);
  const register = (name: string) => names.indexOf(name);
  const changes = /^(\w+) changes$/.exec(words);
  if (changes) {
    const at = register(changes[1]!);
    return at < 0 ? `no register ${changes[1]}` : ({ step }) => step.changed.some(([number]) => number === at);
  }
  const compared = /^(\w+)(?:\[(\d+)\])?\s*(=|!=|<=|>=|<|>)\s*(\S+)$/.exec(words);
  if (!compared) return `not understood; it takes ${kConditionHelp}`;
  const [, name, lane, sign, wanted] = compared;
  const at = register(name!);
  const value = Number(wanted);
  if (at < 0) return `no register ${name}`;
  if (Number.isNaN(value) || (lane !== undefined && Number(lane) > 15)) return "no such value or lane";
  const compare = kComparisons[sign!]!;
  return ({ registers }) => {
    const lanes = lane === undefined ? registers[at]! : [registers[at]![Number(lane)]!];
    return lanes.some((bits) => compare(valueOf(bits, wanted!), value));
  };
}

/// The first step from `from` on at which the condition holds; undefined: none in this window.
export function firstIn(steps: Steps, first: number, from: number, condition: Condition): number | undefined {
  const registers = steps.initial.slice();
  for (let n = 0; n < steps.steps.length; ++n) {
    const step = steps.steps[n]!;
    for (const [register, lanes] of step.changed) registers[register] = lanes;
    if (first + n >= from && condition({ step, registers })) return first + n;
  }
  return undefined;
}
