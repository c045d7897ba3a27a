import { resolve } from 'node:path';
import { chdir, cwd } from 'node:process';
import { vi } from 'vitest';

export type ScriptResult = {
  readonly code: number | undefined;
  readonly out: string;
  readonly err: string;
};

const seen = { runs: 0 };

/**
 * A script of package.json with arguments, in this process and a folder: a process of its own takes most of its time to
 * load modules. Not for what reads the standard input or has signals. One at a time: meanwhile arguments, outputs and
 * folder are the script's.
 */
export async function scriptInProcess(
  script: string,
  args: readonly string[],
  folder: string = cwd(),
): Promise<ScriptResult> {
  const path = resolve(script);
  const before = { argv: process.argv, exitCode: process.exitCode, folder: cwd() };
  let [out, err] = ['', ''];
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      out += String(text);
      return true;
    }),
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      err += String(text);
      return true;
    }),
  ];
  const listeners = process.stdout.listeners('error');
  process.argv = [process.execPath, path, ...args];
  process.exitCode = undefined;
  chdir(folder);
  try {
    // A name that is new each time: the script runs while it is loaded, what it imports is loaded once.
    await import(`${path}?run=${++seen.runs}`);
    return { code: Number(process.exitCode), out, err };
  } catch (error) {
    // As Node.js ends.
    return { code: 1, out, err: `${err}${error instanceof Error ? error.stack : String(error)}\n` };
  } finally {
    chdir(before.folder);
    process.argv = before.argv;
    process.exitCode = before.exitCode;
    for (const spy of spies) spy.mockRestore();
    // Each run may add one, and has a process of its own elsewhere.
    for (const listener of process.stdout.listeners('error')) {
      if (!listeners.includes(listener)) process.stdout.off('error', listener as () => void);
    }
  }
}
