import { AppError } from '../../../shared/app-error.ts';
import type { ProgramFinder } from '../state/program-finder.ts';

/** How a script is run: `args` hold `{0}` where the path of the script goes. */
export type Shell = {
  readonly file: string;
  readonly args: readonly string[];
  /** Of the script file, with the dot. */
  readonly extension: string;
  /** The script as it has to stand in the file. */
  readonly contents: (script: string) => string;
};

type BuiltInShell = { readonly args: string; readonly extension: string };

/**
 * The shells of the documentation (docs.github.com, workflow syntax, jobs.<id>.steps[*].shell); `node`
 * is ours. A name with arguments of its own keeps them.
 */
const BUILT_INS: Readonly<Record<string, BuiltInShell>> = {
  bash: { args: '--noprofile --norc -e -o pipefail {0}', extension: '.sh' },
  sh: { args: '-e {0}', extension: '.sh' },
  pwsh: { args: `-command ". '{0}'"`, extension: '.ps1' },
  powershell: { args: `-command ". '{0}'"`, extension: '.ps1' },
  python: { args: '{0}', extension: '.py' },
  node: { args: '{0}', extension: '.js' },
};
const UNSPECIFIED_ARGS: readonly string[] = ['-e', '{0}'];

/**
 * The shell for a step's `shell` (undefined: bash, else sh, without pipefail).
 * Errors: INVALID_VALUE for a shell without `{0}` that is none of the built-in ones, NOT_FOUND when its
 * program is not on `path`.
 */
export function resolveShell(
  shell: string | undefined,
  path: string,
  finder: ProgramFinder,
): Shell {
  if (shell === undefined || shell.trim() === '') {
    const bash = finder.find('bash', path);
    const file = bash ?? finder.find('sh', path) ?? missing('bash', path, ['sh']);
    return { file, args: UNSPECIFIED_ARGS, extension: '.sh', contents: asIs };
  }
  const [program = '', ...given] = splitArguments(shell);
  const name = program.slice(program.lastIndexOf('/') + 1);
  const builtIn = Object.hasOwn(BUILT_INS, name) ? BUILT_INS[name] : undefined;
  const args = given.length > 0 ? given : splitArguments(builtIn?.args ?? '');
  if (!args.some((arg) => arg.includes('{0}'))) {
    const names = Object.keys(BUILT_INS).join(', ');
    const text = `Invalid shell option. Shell must be a valid built-in (${names}) or a format string containing '{0}'`;
    throw new AppError('INVALID_VALUE', text, { field: 'shell' });
  }
  return {
    file: findShell(program, path, finder),
    args,
    extension: builtIn?.extension ?? '',
    contents: builtIn?.extension === '.ps1' ? stoppingPowerShell : asIs,
  };
}

function findShell(program: string, path: string, finder: ProgramFinder): string {
  const found = finder.find(program, path);
  if (found !== undefined) return found;
  // Many systems have python3 alone; the runner itself is a node.
  if (program === 'python') {
    return finder.find('python3', path) ?? missing(program, path, ['python3']);
  }
  return program === 'node' ? process.execPath : missing(program, path);
}

/** In the words of the official runner, and then where it was looked for. */
function missing(program: string, path: string, others: readonly string[] = []): never {
  const where = program.includes('/')
    ? 'a path of a shell is absolute and that of a program'
    : `the shell of this step${others.map((name) => `, or ${name},`).join('')} is in no folder of its PATH, ${path}`;
  throw new AppError('NOT_FOUND', `${program}: command not found: ${where}`, { field: 'shell' });
}

const asIs = (script: string): string => script;

/** A failing command ends a PowerShell step, as its exit code does. */
function stoppingPowerShell(script: string): string {
  const end = 'if ((Test-Path -LiteralPath variable:\\LASTEXITCODE)) { exit $LASTEXITCODE }';
  return `$ErrorActionPreference = 'stop'\n${script}\n${end}\n`;
}

/** Words separated by blanks; double quotes keep blanks and disappear. */
export function splitArguments(text: string): string[] {
  const words: string[] = [];
  for (const match of text.matchAll(/(?:"[^"]*"|[^\s"])+/g))
    words.push(match[0].replaceAll('"', ''));
  return words;
}
