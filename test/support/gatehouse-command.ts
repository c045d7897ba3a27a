import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

export type Ended = { readonly code: number; readonly out: string; readonly err: string };

/** Arguments, environment variables, and what it reads from its standard input. */
export type CommandParts = readonly [
  args: readonly string[],
  environment?: Readonly<Record<string, string>>,
  input?: string,
];

const GATEHOUSE = join(import.meta.dirname, '../../bin/gatehouse');

/** `bin/gatehouse` as who has it runs it, in a folder that holds its contexts, too, with nothing else of this environment. */
export function gatehouseIn(
  folder: string,
  ...[args, environment = {}, input = '']: CommandParts
): Promise<Ended> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    ...environment,
  };
  return new Promise((resolve) => {
    const child = execFile(GATEHOUSE, args, { env, cwd: folder }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
    child.stdin?.on('error', () => undefined); // it ended without reading
    child.stdin?.end(input);
  });
}

export type GatehouseCommand = {
  /** Where it keeps its contexts, and where it runs. */
  readonly folder: string;
  readonly run: (...parts: CommandParts) => Promise<Ended>;
};

/** The same in a folder of its own, which goes with the test file. */
export function gatehouseCommand(): GatehouseCommand {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-command-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return { folder, run: (...parts) => gatehouseIn(folder, ...parts) };
}
