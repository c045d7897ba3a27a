import type { CliCommand, CliOption } from './command.ts';

/** Where the texts begin. */
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
