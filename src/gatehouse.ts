/** The command `gatehouse`. What a command does is loaded when it is asked for. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EXIT_USAGE } from './cli/core/exit-codes.ts';

/** Programs of folders beside this one, which read their own arguments. */
const BESIDE: Readonly<Record<string, string>> = { load: '../load/run', verify: '../verify/run' };

const [name = '', ...rest] = process.argv.slice(2);
if (name === 'serve') {
  const { prepareServe } = await import('./cli/operate/serve.ts');
  const args = prepareServe(rest, process.env);
  if (typeof args === 'number') process.exitCode = args;
  else {
    replaceArguments(args);
    await import('./main.ts');
  }
} else if (name === 'runner') {
  replaceArguments(rest);
  await import('./runner/cli-main.ts');
} else if (Object.hasOwn(BESIDE, name)) {
  replaceArguments(rest);
  await runBeside(name);
} else {
  const { runCommand } = await import('./cli/run-command.ts');
  process.exitCode = await runCommand(process.argv.slice(2), process.env);
}

/** The program reads its arguments as if it had been started by itself. */
function replaceArguments(args: readonly string[]): void {
  process.argv.splice(2, process.argv.length, ...args);
}

async function runBeside(program: string): Promise<void> {
  // TypeScript in a checkout, JavaScript in a package.
  const ending = import.meta.url.slice(import.meta.url.lastIndexOf('.'));
  const url = new URL(`${BESIDE[program]}${ending}`, import.meta.url);
  if (existsSync(fileURLToPath(url))) await import(url.href);
  else {
    process.stderr.write(`error: ${program} comes with a checkout alone\n`);
    process.exitCode = EXIT_USAGE;
  }
}
