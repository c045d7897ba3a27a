import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const CLEANUP = pathToFileURL('bench/harness/cleanup.ts').href;

/** Runs a program that has two things to end, and `work`; `signal` is sent once it prints "ready". */
async function run(work: string, signal?: NodeJS.Signals) {
  const program = `
    import { atEnd, onInterrupt, withCleanup } from '${CLEANUP}';
    await withCleanup(async () => {
      atEnd(() => console.log('first'));
      atEnd(async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        console.log('second');
      });
      ${work}
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program]);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    if (signal !== undefined && chunk.includes('ready')) child.kill(signal);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, lines: text.trim().split('\n') };
}

const FOREVER = `console.log('ready'); await new Promise((resolve) => setTimeout(resolve, 60_000));`;

test.each([
  ['ends by itself', '', undefined, 0],
  ['fails', `throw new Error('it failed');`, undefined, 1],
  ['is interrupted', FOREVER, 'SIGINT', 130],
  ['is told to end', FOREVER, 'SIGTERM', 130],
] as const)(
  'a program that %s: the last thing started ends first, each once',
  async (_, work, signal, code) => {
    const ended = await run(work, signal);
    expect(ended.lines.filter((line) => line !== '' && line !== 'ready')).toEqual([
      'second',
      'first',
    ]);
    expect(ended.code).toBe(code);
  },
);

test('what is failed by its end does not end the program before all has ended', async () => {
  const work = `atEnd(() => fail(new Error('ended')));
    let fail;
    const ended = new Promise((_, reject) => { fail = reject; });
    console.log('ready');
    await ended;`;
  expect(
    await run(
      work.replace(
        "console.log('ready');",
        "setTimeout(() => undefined, 60_000); console.log('ready');",
      ),
      'SIGINT',
    ),
  ).toEqual({
    code: 130,
    lines: ['ready', 'second', 'first'],
  });
});

test('a signal that npm passes on as well is one signal', async () => {
  const work = `onInterrupt(() => { console.log('heard'); setTimeout(over, 30); return true; });
    let over;
    const wait = new Promise((resolve) => { over = resolve; });
    process.once('SIGINT', () => setTimeout(() => process.kill(process.pid, 'SIGINT'), 5));
    setTimeout(() => undefined, 300);
    console.log('ready');
    await wait;`;
  expect(await run(work, 'SIGINT')).toEqual({
    code: 0,
    lines: ['ready', 'heard', 'second', 'first'],
  });
});

test('a handler of interrupts takes the place of the end while it answers true', async () => {
  const work = `let count = 0;
    onInterrupt(() => { console.log('heard'); return ++count < 2; });
    process.on('SIGINT', () => { if (count === 1) setTimeout(() => process.kill(process.pid, 'SIGINT'), 1_100); });
    ${FOREVER}`;
  expect(await run(work, 'SIGINT')).toEqual({
    code: 130,
    lines: ['ready', 'heard', 'heard', 'second', 'first'],
  });
});
