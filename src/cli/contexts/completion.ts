import { usage } from '../../command-line/parse-words.ts';
import { meant } from '../../shared/text/nearest-name.ts';
import { type CliCommandRow, type CliLine, PROGRAMS } from '../core/command.ts';
import { EXIT_OK } from '../core/exit-codes.ts';

/**
 * All words that a shell completes, except files: first words, second words of groups, and options
 * of commands.
 */
type Words = {
  /** First words, each with its purpose. */
  readonly first: ReadonlyMap<string, string>;
  /** Second words of each group, each with its purpose. */
  readonly second: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly commands: ReadonlyMap<string, CliCommandRow>;
};

const SHELLS: ReadonlyMap<string, (words: Words) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
]);

/**
 * `completion SHELL`: prints the script, which is made from the table of commands. Errors:
 * INVALID_REQUEST for another shell.
 */
export function printCompletion(line: CliLine): Promise<number> {
  const [name = '', ...more] = line.words;
  const script = SHELLS.get(name);
  if (script === undefined || more.length > 0) {
    const known = [...SHELLS.keys()];
    throw usage(`completion: name a shell, one of ${known.join(', ')}${meant(name, known)}`);
  }
  line.screens.output.line(script(wordsOf(line.commands)));
  return Promise.resolve(EXIT_OK);
}

function wordsOf(commands: ReadonlyMap<string, CliCommandRow>): Words {
  const first = new Map(Object.entries(PROGRAMS));
  const second = new Map<string, Map<string, string>>();
  for (const [name, { summary }] of commands) {
    const [group = '', word] = name.split(' ');
    if (word === undefined) first.set(name, summary);
    else {
      const words = second.get(group) ?? new Map<string, string>();
      second.set(group, words.set(word, summary));
    }
  }
  for (const [group, words] of second) {
    if (!first.has(group)) first.set(group, [...words.keys()].join(', '));
  }
  return { first, second, commands };
}

function optionsOf({ options }: CliCommandRow): string {
  return Object.keys(options)
    .map((name) => `--${name}`)
    .join(' ');
}

/** Branches of `case` that set `seconds`, `name` and `options`, for bash and zsh. */
function branches({ second, commands }: Words): string {
  const groups = [...second].map(
    ([group, words]) => `    ${group}) seconds='${[...words.keys()].join(' ')}' ;;`,
  );
  const options = [...commands].map(
    ([name, command]) => `    '${name}') options='${optionsOf(command)}' ;;`,
  );
  return `  case "$first" in
${groups.join('\n')}
  esac
  case "$first" in
    ${[...second.keys()].join('|')}) name="$first $second" ;;
    *) name="$first" ;;
  esac
  case "$name" in
${options.join('\n')}
  esac`;
}

function bashScript(words: Words): string {
  return `_gatehouse() {
  local current="\${COMP_WORDS[COMP_CWORD]}" first="\${COMP_WORDS[1]}" second="\${COMP_WORDS[2]}"
  local seconds='' options='' name=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${[...words.first.keys()].join(' ')} --help --version' -- "$current"))
    return
  fi
${branches(words)}
  if [ "$COMP_CWORD" -eq 2 ] && [ -n "$seconds" ]; then
    COMPREPLY=($(compgen -W "$seconds --help" -- "$current"))
  elif [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    compopt -o filenames 2> /dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _gatehouse gatehouse`;
}

function zshScript(words: Words): string {
  return `#compdef gatehouse
_gatehouse() {
  local current="\${words[CURRENT]}" first="\${words[2]}" second="\${words[3]}" position=$CURRENT
  local seconds='' options='' name=''
  if (( position == 2 )); then
    compadd -- ${[...words.first.keys()].join(' ')} --help --version
    return
  fi
${branches(words)}
  if (( position == 3 )) && [[ -n "$seconds" ]]; then
    compadd -- \${=seconds} --help
  elif [[ "$current" == -* ]]; then
    compadd -- \${=options}
  else
    _files
  fi
}
if [[ "\${funcstack[1]}" == _gatehouse ]]; then
  _gatehouse "$@"
else
  compdef _gatehouse gatehouse
fi`;
}

function fishScript({ first, second, commands }: Words): string {
  const line = (condition: string, rest: string): string =>
    `complete -c gatehouse -n '${condition}' ${rest}`;
  const lines = [...first].map(([word, summary]) =>
    line('__fish_use_subcommand', `-f -a ${word} -d ${quoted(summary)}`),
  );
  for (const [group, words] of second) {
    const others = `not __fish_seen_subcommand_from ${[...words.keys()].join(' ')}`;
    for (const [word, summary] of words) {
      const condition = `__fish_seen_subcommand_from ${group}; and ${others}`;
      lines.push(line(condition, `-f -a ${word} -d ${quoted(summary)}`));
    }
  }
  for (const [name, { options }] of commands) {
    const condition = name
      .split(' ')
      .map((word) => `__fish_seen_subcommand_from ${word}`)
      .join('; and ');
    for (const [option, { short, value, help }] of Object.entries(options)) {
      const letter = short === undefined ? '' : ` -s ${short}`;
      const rest = `-l ${option}${letter}${value === undefined ? '' : ' -r'} -d ${quoted(help[0] ?? '')}`;
      lines.push(line(condition, rest));
    }
  }
  return lines.join('\n');
}

/** Text in single quotes of fish: a backslash and a quote are escaped by a backslash. */
function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
