import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameBatch } from './event-frames.ts';
import { EventSubscriber, WRITE_BYTES_MAX, type EventSink } from './event-subscriber.ts';

/** A client that takes what it is notified to take. */
class Client implements EventSink {
  text = '';
  isEnded = false;
  takes = true;
  #listener: (() => void) | undefined;

  write(bytes: Uint8Array): boolean {
    this.text += Buffer.from(bytes).toString();
    return this.takes;
  }

  onWritable(listener: () => void): void {
    this.#listener = listener;
  }

  catchUp(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }

  finish(): void {
    this.isEnded = true;
  }

  abort(): void {
    this.isEnded = true;
  }
}

const EPOCH = 'e';

function logOf(runId: string, count: number, bytesEach: number): FrameBatch {
  const lines = Array.from({ length: count }, () => 'x'.repeat(bytesEach));
  return FrameBatch.ofLines({ runId, jobId: 'j', stepNumber: 1 }, { lines, bytes: 1 }, EPOCH, 1);
}

function stateOf(runId: string, bytes: number): FrameBatch {
  const step = {
    number: 1,
    name: 'n'.repeat(bytes),
    status: 'queued',
    log: '',
    outputs: {},
  } as const;
  return FrameBatch.ofEvent(
    { type: 'step.started', runId, jobId: 'j', stepNumber: 1, step },
    EPOCH,
    1,
  );
}

/** What a client saw: lines and dropped lines by run, and the order of events. */
function seen(text: string): { lines: number; dropped: Map<string, number>; states: number } {
  const dropped = new Map<string, number>();
  for (const [, runId = '', count] of text.matchAll(
    /event: gap\ndata: \{"runId":"(\w+)","dropped":(\d+)\}/g,
  )) {
    dropped.set(runId, (dropped.get(runId) ?? 0) + Number(count));
  }
  const lines = text.match(/event: step\.log\n/g)?.length ?? 0;
  return { lines, dropped, states: text.match(/event: step\.started\n/g)?.length ?? 0 };
}

test('lines that are missed after a gap was sent make a gap of their own', () => {
  // Wherever the first write ends: before, between and after the gaps.
  for (let padding = 0; padding < 700; padding += 10) {
    const client = new Client();
    const subscriber = new EventSubscriber(client, {}, WRITE_BYTES_MAX + 20_000, {
      onReady: () => undefined,
      onDropped: () => undefined,
    });
    subscriber.enqueue(stateOf('a', WRITE_BYTES_MAX - padding));
    subscriber.enqueue(logOf('a', 3, 10_000));
    subscriber.enqueue(logOf('b', 1, 10_000));
    subscriber.drainSome();
    subscriber.enqueue(logOf('a', 7, 10));
    while (subscriber.hasWaiting) subscriber.drainSome();
    const { lines, states, dropped } = seen(client.text);
    expect([lines + (dropped.get('a') ?? 0), states, dropped.get('b')]).toEqual([10, 1, 1]);
  }
});

test('whatever a client takes when: each line arrives or is counted, each state arrives', () => {
  const action = fc.oneof(
    fc.record({
      kind: fc.constant('log' as const),
      run: fc.constantFrom('a', 'b'),
      count: fc.integer({ min: 1, max: 40 }),
      bytes: fc.constantFrom(10, 1_000, 20_000),
    }),
    fc.record({ kind: fc.constant('state' as const), run: fc.constantFrom('a', 'b') }),
    fc.record({ kind: fc.constant('block' as const) }),
    fc.record({ kind: fc.constant('take' as const) }),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60, size: 'max' }), (actions) => {
      const client = new Client();
      let droppedCount = 0;
      const subscriber = new EventSubscriber(client, {}, 300_000, {
        onReady: () => undefined,
        onDropped: (count) => {
          droppedCount += count;
        },
      });
      const drain = (): void => {
        while (subscriber.hasWaiting && !subscriber.isBlocked) subscriber.drainSome();
      };
      let lines = 0;
      let states = 0;
      for (const one of actions) {
        if (one.kind === 'block') client.takes = false;
        if (one.kind === 'take') {
          client.takes = true;
          client.catchUp();
          drain();
        }
        if (one.kind === 'log') {
          lines += one.count;
          subscriber.enqueue(logOf(one.run, one.count, one.bytes));
        }
        if (one.kind === 'state') {
          states += 1;
          subscriber.enqueue(stateOf(one.run, 10));
        }
        if (one.kind !== 'block') drain();
      }
      client.takes = true;
      client.catchUp();
      drain();
      expect(client.isEnded).toBe(false);
      const result = seen(client.text);
      const gaps = [...result.dropped.values()].reduce((sum, count) => sum + count, 0);
      expect(result.lines + gaps).toBe(lines);
      expect(gaps).toBe(droppedCount);
      expect(result.states).toBe(states);
    }),
    { numRuns: 200 },
  );
});
