import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { createClockMemory, DatabaseClock, DatabaseTime } from './database-clock.ts';

const DAY_MS = 86_400_000;

/** A machine whose wall clock is wrong by `skewMs`, and a database's clock, both of them moved by hand. */
class Machine implements Clock {
  monotonic = 5_000;
  skewMs = 0;
  databaseMs = 1_700_000_000_000;

  nowMs(): number {
    return this.databaseMs + this.skewMs;
  }

  monotonicMs(): number {
    return this.monotonic;
  }

  pass(ms: number, databaseRate = 1): void {
    this.monotonic += ms;
    this.databaseMs += ms * databaseRate;
  }

  /** A query that takes this long on its ways there and back. */
  sample(time: DatabaseTime, thereMs = 0, backMs = 0): void {
    const sentMs = this.monotonic;
    this.pass(thereMs);
    const { databaseMs } = this;
    this.pass(backMs);
    time.observe(sentMs, this.monotonic, databaseMs);
  }
}

function start(): { machine: Machine; time: DatabaseTime } {
  const machine = new Machine();
  return { machine, time: new DatabaseTime(machine, 100) };
}

describe('the estimate', () => {
  test('is the database’s time, whatever the wall clock shows and whenever it is set (I1)', () => {
    const { machine, time } = start();
    machine.skewMs = 30 * DAY_MS;
    machine.sample(time);
    expect(time.clock.nowMs()).toBe(machine.databaseMs);
    expect(time.wallOffsetMs).toBe(-30 * DAY_MS);
    machine.skewMs = -DAY_MS;
    machine.pass(700);
    expect(time.clock.nowMs()).toBe(machine.databaseMs);
    expect(time.wallOffsetMs).toBe(DAY_MS);
    machine.sample(time);
    expect([time.clock.nowMs(), time.steps]).toEqual([machine.databaseMs, 0]);
  });

  test('is uncertain by half the round trip, and by what clocks drift since (I2)', () => {
    const { machine, time } = start();
    expect(time.uncertaintyMs).toBe(Infinity);
    machine.sample(time, 3, 7);
    expect(time.uncertaintyMs).toBe(5);
    expect(time.clock.nowMs() - machine.databaseMs).toBe(-2);
    machine.pass(60_000);
    expect(time.uncertaintyMs).toBeCloseTo(65, 6);
  });

  test('is no worse for an answer that took long', () => {
    const { machine, time } = start();
    machine.sample(time, 1, 1);
    machine.pass(1_000);
    machine.sample(time, 0, 9_000);
    // It says that the time is no later than it was thought to be at the worst: half of the interval goes.
    expect(time.uncertaintyMs).toBeCloseTo((1 + 10) / 2, 6);
    machine.sample(time, 0.1, 0.1);
    expect(time.uncertaintyMs).toBeLessThan(0.101);
  });

  test('follows a database whose clock was set, forward at once (I3)', () => {
    const { machine, time } = start();
    machine.sample(time, 1, 1);
    machine.databaseMs += 5_000;
    machine.sample(time, 1, 1);
    expect([time.clock.nowMs(), time.steps, time.heldMs]).toEqual([machine.databaseMs, 1, 0]);
  });

  test('stands still where the database went back, until that has come as far', () => {
    const { machine, time } = start();
    machine.sample(time);
    const before = time.clock.nowMs();
    machine.databaseMs -= 5_000;
    machine.sample(time);
    expect([time.clock.nowMs(), time.steps, time.heldMs]).toEqual([before, 1, 5_000]);
    machine.pass(4_000);
    machine.sample(time);
    expect([time.clock.nowMs(), time.heldMs]).toEqual([before, 1_000]);
    machine.pass(1_500);
    expect(time.clock.nowMs()).toBe(machine.databaseMs);
    expect(time.heldMs).toBe(0);
    expect(time.uncertaintyMs).toBeLessThan(10);
  });

  test('is the machine’s own until there is a sample, and may then go back', () => {
    const { machine, time } = start();
    machine.skewMs = DAY_MS;
    expect(time.clock.nowMs()).toBe(machine.databaseMs + DAY_MS);
    machine.sample(time);
    expect(time.clock.nowMs()).toBe(machine.databaseMs);
  });

  test('refuses what cannot be', () => {
    const { time } = start();
    expect(() => time.observe(2, 1, 0)).toThrow('after its question');
    expect(() => time.observe(1, 2, Number.NaN)).toThrow('is a number');
  });
});

test('whatever happens, time never goes back, and is off by no more than it says (I4)', () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
  const event = fc.oneof(
    fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.double({ min: 0, max: 5_000, noNaN: true }),
      rate: fc.double({ min: 0.9991, max: 1.0009, noNaN: true }),
    }),
    fc.record({
      kind: fc.constant('sample' as const),
      there: fc.double({ min: 0, max: 300, noNaN: true }),
      back: fc.double({ min: 0, max: 300, noNaN: true }),
    }),
    fc.record({
      kind: fc.constant('skew' as const),
      ms: fc.integer({ min: -DAY_MS, max: DAY_MS }),
    }),
    fc.record({
      kind: fc.constant('step' as const),
      ms: fc.integer({ min: -20_000, max: 20_000 }),
    }),
  );
  const events = fc.array(event, { maxLength: 60, size: 'max' });
  fc.assert(
    fc.property(events, (steps) => {
      const { machine, time } = start();
      machine.sample(time, 1, 1);
      const other = new DatabaseClock(time.memory, machine, 100);
      let lastMs = time.clock.nowMs();
      // Until the next sample nobody can know that the database's clock was set.
      let isKnown = true;
      for (const step of steps) {
        if (step.kind === 'pass') machine.pass(step.ms, step.rate);
        else if (step.kind === 'skew') machine.skewMs = step.ms;
        else if (step.kind === 'step') {
          machine.databaseMs += step.ms;
          isKnown = false;
        } else {
          const { steps: before } = time;
          machine.sample(time, step.there, step.back);
          // A small step may hide in the uncertainty that there was.
          if (time.steps > before) isKnown = true;
        }
        const nowMs = other.nowMs();
        expect(nowMs).toBeGreaterThanOrEqual(lastMs);
        expect(time.clock.nowMs()).toBe(nowMs);
        // A worker that was started anew remembers nothing.
        expect(new DatabaseClock(time.memory, machine, 100).nowMs()).toBe(nowMs);
        lastMs = nowMs;
        if (isKnown && time.heldMs === 0) {
          const slack = 1e-3;
          expect(Math.abs(nowMs - machine.databaseMs)).toBeLessThanOrEqual(
            time.uncertaintyMs + slack,
          );
        }
      }
    }),
    { seed, numRuns: 300 * Number(process.env['FUZZ_RUNS'] ?? 1) },
  );
});

test('threads read one time while it is set, and never see it torn or going back', async () => {
  const time = new DatabaseTime();
  const at = performance.now();
  time.observe(at, at, DAY_MS);
  // The real clocks of two threads: each has its own origin, the memory is one.
  const end = new SharedArrayBuffer(4);
  const source = `
    import { parentPort, workerData } from 'node:worker_threads';
    const { DatabaseClock } = await import(workerData.module);
    const clock = new DatabaseClock(workerData.memory);
    let last = 0, faults = 0, largest = 0;
    parentPort.postMessage('begun');
    const turn = () => {
      for (let i = 0; i < 20_000; i++) {
        const now = clock.nowMs();
        if (now < last) faults++;
        largest = Math.max(largest, now);
        last = now;
      }
      if (Atomics.load(workerData.end, 0) === 1) parentPort.postMessage({ faults, last, largest });
      else setImmediate(turn);
    };
    turn();
  `;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
    workerData: {
      memory: time.memory,
      end: new Int32Array(end),
      module: new URL('./database-clock.ts', import.meta.url).href,
    },
  });
  const next = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
  await next();
  for (let i = 0; i < 20_000; i++) {
    const nowMs = performance.now();
    time.observe(nowMs, nowMs, DAY_MS + (nowMs - at) + (i % 2 === 0 ? 40 : 0));
    if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const answer = next();
  Atomics.store(new Int32Array(end), 0, 1);
  const { faults, last, largest } = (await answer) as {
    faults: number;
    last: number;
    largest: number;
  };
  expect(faults).toBe(0);
  expect(largest).toBe(last);
  expect(Math.abs(time.clock.nowMs() - last)).toBeLessThan(60_000);
  expect(time.steps).toBeGreaterThan(1_000);
  await worker.terminate();
});

test('a thread whose first look falls into a replacement waits for its end', async () => {
  const memory = createClockMemory();
  const versions = new Int32Array(memory);
  const values = new Float64Array(memory);
  // As `publish` has it between its first line and its last, in a thread that lost its processor there.
  Atomics.add(versions, 0, 1);
  const source = `
    import { parentPort, workerData } from 'node:worker_threads';
    const { DatabaseClock } = await import(workerData.module);
    const clock = new DatabaseClock(workerData.memory);
    parentPort.postMessage('begun');
    parentPort.postMessage(clock.nowMs());
  `;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
    workerData: { memory, module: new URL('./database-clock.ts', import.meta.url).href },
  });
  const said: unknown[] = [];
  worker.on('message', (message) => said.push(message));
  await expect.poll(() => said).toEqual(['begun']);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(said).toEqual(['begun']);
  values[1] = DAY_MS;
  values[2] = 3 * DAY_MS;
  Atomics.add(versions, 0, 1);
  await expect.poll(() => said.length).toBe(2);
  expect(said[1]).toBeGreaterThanOrEqual(3 * DAY_MS);
  expect(said[1]).toBeLessThan(Date.now() / 2);
  await worker.terminate();
});

test('memory without a sample leaves the machine’s clock alone', () => {
  expect(Math.abs(new DatabaseClock(createClockMemory()).nowMs() - Date.now())).toBeLessThan(1_000);
});
