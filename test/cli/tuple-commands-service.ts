import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { type Instance, instanceForFile } from '../support/instance.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { createWay, type Way } from './tuple-commands-way.ts';

const PROGRAM = resolve(import.meta.dirname, '../../bin/gatehouse');

export type Ended = { readonly code: number | null; readonly out: string; readonly err: string };
export type Started = {
  readonly child: ChildProcess;
  readonly err: () => string;
  readonly ended: Promise<Ended>;
};
type Options = { readonly url?: string; readonly input?: string; readonly token?: string };

export type TupleCommands = {
  readonly database: TestDatabase;
  readonly instance: Instance;
  readonly folder: string;
  /** Starts the command, as people do. */
  readonly start: (args: readonly string[], options?: Options) => Started;
  readonly gatehouse: (args: readonly string[], options?: Options) => Promise<Ended>;
  /** A way to the service that can be cut; gone with the test. */
  readonly way: () => Promise<Way>;
  /** Writes a file of the folder; its name. */
  readonly file: (name: string, text: string) => string;
  readonly textOf: (name: string) => string;
};

/** A service of the calling file with Watch, and the command in a folder of its own beside it. */
export async function tupleCommands(): Promise<TupleCommands> {
  const { database, instance } = await instanceForFile({ GATEWAY_WATCH_STREAMS: '4' });
  const folder = mkdtempSync(join(tmpdir(), 'tuple-commands-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const start = (
    args: readonly string[],
    { url = instance.baseUrl, input = '', token = instance.token }: Options = {},
  ): Started => {
    const child = spawn(PROGRAM, args, {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        XDG_CONFIG_HOME: join(folder, 'config'),
        GATEHOUSE_URL: url,
        GATEHOUSE_TOKEN: token,
      },
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk) => (out += String(chunk)));
    child.stderr.on('data', (chunk) => (err += String(chunk)));
    child.stdin.on('error', () => undefined); // It need not read all.
    child.stdin.end(input);
    const ended = new Promise<Ended>((done) => {
      child.once('close', (code) => done({ code, out, err }));
    });
    return { child, err: () => err, ended };
  };
  return {
    database,
    instance,
    folder,
    start,
    gatehouse: async (args, options) => await start(args, options).ended,
    async way() {
      const made = await createWay(instance.baseUrl);
      onTestFinished(async () => await made.close());
      return made;
    },
    file(name, text) {
      writeFileSync(join(folder, name), text);
      return name;
    },
    textOf: (name) => readFileSync(join(folder, name), 'utf8'),
  };
}

/** The lines with tuples of an export. */
export const tupleLines = (text: string): string[] =>
  text.split('\n').filter((line) => line.startsWith('{"tuple"'));

/** Without tokens, rates and times, which are new each time. */
export function plain({ code, out, err }: Ended): Ended {
  const same = (text: string): string =>
    text
      .replaceAll(/[\w-]{40}(?![\w-])/g, 'TOKEN')
      .replaceAll(/…[\w-]{8}/g, '…TOKEN')
      .replaceAll(/\d+\/s/g, 'N/s')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z {2}/g, 'TIME  ');
  return { code, out: same(out), err: same(err) };
}
