/** Column at which the texts begin. */
const COLUMN = 29;

/** Formats the help of one command of `program`: summary, usage, words, options, notes and examples. */
export function commandHelp(program: string, command: CliCommand): string {
  const { summary, usage, words, options, notes, examples = [] } = command;
  const lines = [
    summary,
    '',
    ...usage.map((text, index) => `${index === 0 ? 'Usage: ' : '       '}${program} ${text}`),
    '',
    ...Object.entries(words).map(([word, text]) => `${`  ${word}`.padEnd(COLUMN)}${text}`),
    ...Object.entries(options).flatMap(([option, about]) => optionLines(option, about)),
    ...(notes === undefined ? [] : ['', notes]),
    ...(examples.length === 0 ? [] : ['', 'Examples:', ...examples.map((text) => `  ${text}`)]),
  ];
  return lines.join('\n');
}

function optionLines(name: string, { short, value, help }: CliOption): readonly string[] {
  const letter = short === undefined ? '    ' : `-${short}, `;
  const head = `  ${letter}--${name}${value === undefined ? '' : ` ${value}`}`;
  const isLong = head.length >= COLUMN - 1;
  const first = isLong ? [head] : [];
  return [
    ...first,
    ...help.map((text, index) => `${(index === 0 && !isLong ? head : '').padEnd(COLUMN)}${text}`),
  ];
}

/** An option of a command, as it is parsed and as the help shows it. */
export type CliOption = {
  /** One letter. The same name has the same letter, and the same kind, in every command. */
  readonly short?: string;
  /** Placeholder for the value in the help; absent for a flag. */
  readonly value?: string;
  /** Whether it may be given more than once. Otherwise the last one counts. */
  readonly isMultiple?: true;
  /** Lines of the help. */
  readonly help: readonly string[];
};

/** A command, as it is parsed and as the help shows it. */
export type CliCommand = {
  /** One sentence. */
  readonly summary: string;
  /** Usage lines, without the name of the program. */
  readonly usage: readonly string[];
  /** Words that follow the command, for the help. */
  readonly words: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, CliOption>>;
  /** Text below the options. */
  readonly notes?: string;
  /** Whole lines for a shell, below the notes. A comment line explains the line after it. */
  readonly examples?: readonly string[];
};
