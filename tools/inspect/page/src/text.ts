export function duration(ns: number): string {
  if (ns < 1000) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(1)} us`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(3)} ms`;
  return `${(ns / 1e9).toFixed(3)} s`;
}

export function hex(word: number): string {
  return "0x" + word.toString(16).padStart(8, "0");
}

export function number(value: number | null, digits = 6): string {
  if (value === null) return "not a number";
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 1e-4 && Math.abs(value) < 1e7 ? value.toPrecision(digits) : value.toExponential(4);
}

const kView = new DataView(new ArrayBuffer(4));
export type Form = "auto" | "hex" | "float" | "int" | "unsigned";

/// Floats, if all lanes look like ordinary ones, as traces have it; else hexadecimal.
export function formOf(lanes: number[]): "float" | "hex" {
  const ordinary = (bits: number) => {
    const exponent = ((bits >>> 23) & 255) - 127;
    return bits === 0 || bits === 0x80000000 || (exponent > -40 && exponent < 40);
  };
  return lanes.every(ordinary) && lanes.some((bits) => bits !== 0) ? "float" : "hex";
}

export function word(bits: number, form: Exclude<Form, "auto">): string {
  kView.setUint32(0, bits);
  switch (form) {
    case "hex":
      return bits.toString(16).padStart(8, "0");
    case "float":
      return number(kView.getFloat32(0));
    case "int":
      return String(kView.getInt32(0));
    case "unsigned":
      return String(bits);
  }
}

export function color(rgba: number): string {
  return `rgb(${rgba & 255} ${(rgba >>> 8) & 255} ${(rgba >>> 16) & 255} / ${((rgba >>> 24) / 255).toFixed(3)})`;
}
