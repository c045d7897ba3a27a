type Place = { readonly line: number; readonly column: number };
/** A mutant as Stryker reports it, as far as it is looked at here. Lines and columns begin with 1. */
export type Mutant = {
  readonly fileName: string;
  readonly status: string;
  readonly replacement?: string | undefined;
  readonly location: { readonly start: Place; readonly end: Place };
};

/** Survivors of a file that stay, with the reason why they change nothing. */
export type AcceptedGroup = { readonly reason: string; readonly mutants: readonly string[] };
export type AcceptedList = Readonly<Record<string, readonly AcceptedGroup[]>>;

export type Judgement = {
  readonly total: number;
  readonly killed: number;
  readonly accepted: number;
  /** There was no time for them: they are in no other count. */
  readonly untried: number;
  readonly survived: readonly { readonly line: number; readonly text: string }[];
  /** Entries of the list that no survivor matches; not told while some are untried. */
  readonly stale: readonly string[];
};

const TEXT_MAX = 120;

/**
 * Counts the mutants of a file and takes off what the list accepts. A mutant is told by its text
 * (`textOf`), not by its line, so that the list outlives changes elsewhere in the file; one entry
 * stands for as many mutants as read the same.
 */
export function judge(
  file: string,
  source: string,
  mutants: readonly Mutant[],
  groups: readonly AcceptedGroup[] = [],
): Judgement {
  const lines = source.split('\n');
  const accepted = new Set(groups.flatMap((group) => group.mutants));
  const unused = new Set(accepted);
  const survived: { line: number; text: string }[] = [];
  let total = 0;
  let killed = 0;
  let untried = 0;
  for (const mutant of mutants) {
    if (!file.endsWith(mutant.fileName) && !mutant.fileName.endsWith(file)) continue;
    if (mutant.status === 'Ignored' || mutant.status === 'CompileError') continue;
    if (mutant.status === 'Pending') {
      untried++;
      continue;
    }
    total++;
    if (mutant.status === 'Killed' || mutant.status === 'Timeout') {
      killed++;
      continue;
    }
    const text = textOf(mutant, lines);
    unused.delete(text);
    if (!accepted.has(text)) survived.push({ line: mutant.location.start.line, text });
  }
  const left = total - killed - survived.length;
  const stale = untried > 0 ? [] : [...unused];
  return { total, killed, accepted: left, untried, survived, stale };
}

/** `original → replacement ⟨line⟩`, with white space made one and long parts cut. */
function textOf({ location, replacement }: Mutant, lines: readonly string[]): string {
  const { start, end } = location;
  const from = lines[start.line - 1] ?? '';
  const original =
    start.line === end.line
      ? from.slice(start.column - 1, end.column - 1)
      : [
          from.slice(start.column - 1),
          ...lines.slice(start.line, end.line - 1),
          (lines[end.line - 1] ?? '').slice(0, end.column - 1),
        ].join(' ');
  return `${lineOf(original)} → ${lineOf(replacement ?? '')} ⟨${lineOf(from)}⟩`;
}

/** A piece of code as mutants are told by it: white space made one, long pieces cut. */
export function lineOf(code: string): string {
  const plain = code.replaceAll(/\s+/g, ' ').trim();
  return plain.length > TEXT_MAX ? `${plain.slice(0, TEXT_MAX)}…` : plain;
}
