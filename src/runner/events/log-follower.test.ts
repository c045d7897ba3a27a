import { expect, test } from 'vitest';
import type { RunService } from '../model/ports.ts';
import type { Job, Step, WorkflowRun } from '../model/run.ts';
import { LogFollower } from './log-follower.ts';

/** A run of one job with two steps, whose log is a list in memory instead of a file. */
class FollowedRun {
  readonly disk: string[][] = [[], []];
  /** Of each reading of the first step. */
  onRead: (() => void) | undefined;
  completedAt: string | undefined;
  readonly #isStarted = [false, false];
  readonly follower: LogFollower;

  constructor() {
    // Only `get` is called.
    const runs = { get: (id: string) => (id === 'r' ? this.#run() : undefined) };
    this.follower = new LogFollower(
      () => runs as unknown as RunService,
      (_runId, _jobId, stepNumber) => this.#read(stepNumber),
    );
  }

  start(stepNumber: number): void {
    this.#isStarted[stepNumber - 1] = true;
    const step = this.#step(stepNumber);
    this.follower.publish({ type: 'step.started', runId: 'r', jobId: 'j', stepNumber, step });
  }

  write(stepNumber: number, lines: readonly string[]): void {
    this.disk[stepNumber - 1]?.push(...lines);
  }

  announce(stepNumber: number, lines: readonly string[]): void {
    this.follower.publishLog('r', 'j', stepNumber, lines);
  }

  end(): void {
    this.completedAt = '2026-01-01T00:00:00.000Z';
    this.follower.publish({ type: 'run.completed', runId: 'r', run: this.#run() });
  }

  async *#read(stepNumber: number): AsyncGenerator<Uint8Array> {
    await Promise.resolve();
    const lines = this.disk[stepNumber - 1] ?? [];
    if (lines.length > 0) yield Buffer.from(`${lines.join('\n')}\nhalf a li`);
    if (stepNumber === 1) {
      const { onRead } = this;
      this.onRead = undefined;
      onRead?.();
    }
  }

  #step(number: number): Step {
    const startedAt = this.#isStarted[number - 1] === true ? 'now' : undefined;
    return { number, name: `s${number}`, status: 'in_progress', log: '', outputs: {}, startedAt };
  }

  #run(): WorkflowRun {
    const steps = [this.#step(1), this.#step(2)];
    const job: Job = {
      id: 'j',
      name: 'j',
      status: 'in_progress',
      steps,
      outputs: {},
      needs: [],
      attempt: 1,
    };
    return { id: 'r', jobs: [job], completedAt: this.completedAt } as unknown as WorkflowRun;
  }
}

async function textOf(parts: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const part of parts) text += part;
  return text;
}

const HEAD = '=== Job: j (j) ===\n--- Step 1: s1 [in_progress] ---\n';

test('lines that are on disk before they are announced appear once', async () => {
  const run = new FollowedRun();
  run.start(1);
  run.write(1, ['a', 'b']);
  run.announce(1, ['a', 'b']);
  run.write(1, ['c', 'd']);
  // Emitted while and after the file was read, which held them already; then more.
  run.onRead = () => {
    run.announce(1, ['c', 'd']);
    run.write(1, ['e']);
    run.announce(1, ['e']);
    run.start(2);
    run.write(2, ['z']);
    run.announce(2, ['z']);
  };
  let text = '';
  for await (const part of run.follower.follow('r', {})) {
    text += part;
    if (text.endsWith('z\n')) run.end();
  }
  expect(text).toBe(`${HEAD}a\nb\nc\nd\ne\n--- Step 2: s2 [in_progress] ---\nz\n`);
});

test('a reader that fell behind takes the rest from the disk', async () => {
  const run = new FollowedRun();
  run.start(1);
  run.write(1, ['first']);
  run.announce(1, ['first']);
  const parts = run.follower.follow('r', {});
  expect((await parts.next()).value).toBe(`${HEAD}first\n`);
  const count = 3_000;
  for (let i = 0; i < count; i++) {
    const line = `${i} ${'x'.repeat(1_000)}`;
    run.write(1, [line]);
    run.announce(1, [line]);
  }
  run.end();
  const numbers = (await textOf(parts)).split('\n').filter((line) => line !== '');
  expect(numbers.map((line) => Number.parseInt(line, 10))).toEqual(
    Array.from({ length: count }, (_, i) => i),
  );
});

test('with tail only the last lines of what was there, and all that follows', async () => {
  const run = new FollowedRun();
  run.start(1);
  run.write(1, ['a', 'b', 'c']);
  run.announce(1, ['a', 'b', 'c']);
  run.onRead = () => {
    run.write(1, ['d']);
    run.announce(1, ['d']);
    run.end();
  };
  expect(await textOf(run.follower.follow('r', { tail: 2 }))).toBe(`${HEAD}b\nc\nd\n`);
});

test('with numbers each header tells the number of the line below it', async () => {
  const run = new FollowedRun();
  run.start(1);
  run.start(2);
  run.write(1, ['1', '2', '3']);
  run.announce(1, ['1', '2', '3']);
  run.end();
  let text = '';
  for await (const part of run.follower.follow('r', { tail: 2, isNumbered: true })) text += part;
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.startsWith('--- Step 1 from line 2: '));
  expect(lines.slice(at + 1, at + 3)).toEqual(['2', '3']);
  expect(await run.follower.lines(['r', 'j', 1], 2, 1)).toEqual({
    first: 2,
    lines: ['2'],
    total: 3,
  });
});
