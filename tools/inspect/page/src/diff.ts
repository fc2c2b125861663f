// What two texts have in common, line by line.

export interface DiffLine {
  here?: number; // its number in each of them, where it stands there
  there?: number;
}

/// The longest common subsequence, with what stands between.
export function diff(here: string[], there: string[]): DiffLine[] {
  const width = there.length + 1;
  const common = new Uint16Array((here.length + 1) * width);
  for (let a = here.length - 1; a >= 0; --a)
    for (let b = there.length - 1; b >= 0; --b)
      common[a * width + b] = here[a] === there[b] ? common[(a + 1) * width + b + 1]! + 1 : Math.max(common[(a + 1) * width + b]!, common[a * width + b + 1]!);
  const lines: DiffLine[] = [];
  let a = 0;
  let b = 0;
  while (a < here.length || b < there.length) {
    if (a < here.length && b < there.length && here[a] === there[b]) lines.push({ here: a++, there: b++ });
    else if (b >= there.length || (a < here.length && common[(a + 1) * width + b]! >= common[a * width + b + 1]!)) lines.push({ here: a++ });
    else lines.push({ there: b++ });
  }
  return lines;
}
