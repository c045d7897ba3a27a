import { type ParsedWords, parseWords, usage } from '../command-line/parse-words.ts';
import { type Screens, Terminal } from '../command-line/terminal.ts';
import { packageVersion } from '../observability/build-info.ts';
import { AppError } from '../shared/app-error.ts';
import { meant } from '../shared/text/nearest-name.ts';
import { ALL_OPTIONS, COMMANDS, secondWords } from './command-table.ts';
import { type CliCommandRow, type CliLine, PROGRAMS } from './core/command.ts';
import { EXIT_OK, EXIT_UNAVAILABLE, EXIT_USAGE, exitCodeOf } from './core/exit-codes.ts';
import { helpText } from './help.ts';

/**
 * Runs the command that the words behind the program's name select, with the streams of the
 * process. Resolves to the exit code (core/exit-codes.ts). Never rejects, and never resolves to 0
 * after an error.
 */
export async function runCommand(
  args: readonly string[],
  environment: CliLine['environment'],
): Promise<number> {
  const screens: Screens = {
    output: new Terminal(process.stdout, environment),
    notes: new Terminal(process.stderr, environment),
  };
  // The reader is gone (`| head`). An unread answer must not be 0, which would be an allow.
  process.stdout.on('error', () => process.exit(EXIT_UNAVAILABLE));
  // Name for errors before the options are parsed.
  let [name = ''] = commandOf(args.filter((word) => !word.startsWith('-'))) ?? [];
  try {
    const words = parseWords(args, ALL_OPTIONS, (first) => commandOf(first)?.[1].options);
    const found = commandOf(words.positionals);
    name = found?.[0] ?? words.positionals[0] ?? '';
    const isHelp = words.values['help'] !== undefined;
    if (words.values['version'] !== undefined) {
      screens.output.line(`gatehouse ${packageVersion()}`);
      return EXIT_OK;
    }
    if (found === undefined || isHelp) return showHelp(words, isHelp, screens);
    return await run(found, words, environment, screens);
  } catch (error) {
    report(error, name, screens);
    return exitCodeOf(error);
  }
}

/** The command at the start of the words, of two words or one. */
function commandOf(
  words: readonly string[],
): readonly [name: string, command: CliCommandRow] | undefined {
  const names = [words.slice(0, 2).join(' '), words[0] ?? ''];
  for (const name of names) {
    const command = COMMANDS.get(name);
    if (command !== undefined) return [name, command];
  }
  return undefined;
}

function showHelp({ positionals }: ParsedWords, isAsked: boolean, screens: Screens): number {
  const found = commandOf(positionals);
  const [first, second] = positionals;
  const seconds = secondWords(first ?? '');
  if (found === undefined && first !== undefined && first !== 'help') {
    if (seconds.length === 0) {
      const names = [...new Set([...COMMANDS.keys()].map((name) => name.split(' ')[0] ?? ''))];
      throw usage(
        `there is no command ${first}${meant(first, [...names, ...Object.keys(PROGRAMS)])}`,
      );
    }
    if (second !== undefined) {
      const known = seconds.join(', ');
      throw usage(
        `there is no command ${first} ${second}${meant(second, seconds)}; there are ${known}`,
      );
    }
  }
  const named = first === 'help' ? positionals.slice(1).join(' ') : (found?.[0] ?? first);
  const isDone = isAsked || first === 'help';
  (isDone ? screens.output : screens.notes).line(helpText(named));
  return isDone ? EXIT_OK : EXIT_USAGE;
}

async function run(
  [name, command]: readonly [string, CliCommandRow],
  { values, positionals }: ParsedWords,
  environment: CliLine['environment'],
  screens: Screens,
): Promise<number> {
  const wrong = Object.keys(values).find((option) => !(option in command.options));
  if (wrong !== undefined) throw usage(`--${wrong} is no option of ${name}`);
  const texts = (option: string): readonly string[] =>
    (values[option] ?? []).filter((value) => typeof value === 'string');
  const line: CliLine = {
    name,
    words: positionals.slice(name.split(' ').length),
    text: (option) => texts(option).at(-1),
    texts,
    isSet: (option) => values[option] !== undefined,
    commands: COMMANDS,
    environment,
    screens,
  };
  const runLine = await command.load();
  return await runLine(line);
}

/** Prints an error, and a pointer to the help. */
function report(error: unknown, name: string, { notes }: Screens): void {
  const head = notes.paint('error:', 'red');
  if (!(error instanceof AppError)) {
    notes.line(
      `${head} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
    return;
  }
  for (const [index, text] of error.message.split('\n').entries()) {
    notes.line(`${index === 0 ? head : '      '} ${notes.foreign(text)}`);
  }
  if (error.reason === 'INVALID_REQUEST') {
    notes.line(`See: gatehouse ${COMMANDS.has(name) ? `${name} ` : ''}--help`);
  }
}
