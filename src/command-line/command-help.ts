/** Column at which the texts begin. */
const COLUMN = 29;

/** The help of one command of `program`: summary, usage, words, options, notes and examples. */
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
  /** Placeholder of its value in the help; absent for a flag. */
  readonly value?: string;
  /** Whether it may be repeated; else the last one counts. */
  readonly isMultiple?: true;
  /** Lines of the help. */
  readonly help: readonly string[];
};

/** A command, as it is parsed and as the help shows it. */
export type CliCommand = {
  /** One sentence. */
  readonly summary: string;
  /** Behind the name of the program. */
  readonly usage: readonly string[];
  /** The words behind the command, for the help. */
  readonly words: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, CliOption>>;
  /** Below the options. */
  readonly notes?: string;
  /** Whole lines for a shell, below the notes; a line of a comment says what the next one is for. */
  readonly examples?: readonly string[];
};
