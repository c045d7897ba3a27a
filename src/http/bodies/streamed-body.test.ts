import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BodyBudget } from './body-budget.ts';
import { StreamedBody } from './streamed-body.ts';
import { EnvelopeEnds, LineEnds, type UnitEnds } from './unit-ends.ts';

const BUDGET_BYTES = 4 * 2 ** 20;

type Opened = {
  readonly body: StreamedBody;
  readonly budget: BodyBudget;
  readonly gone: AbortController;
  readonly flow: { pauses: number; resumes: number };
};

function open(ends: UnitEnds, bytesMax = BUDGET_BYTES): Opened {
  const budget = new BodyBudget({ bytesMax });
  const gone = new AbortController();
  const flow = { pauses: 0, resumes: 0 };
  const body = new StreamedBody({
    ends,
    budget,
    owner: () => 'ann',
    signal: gone.signal,
    pause: () => void (flow.pauses += 1),
    resume: () => void (flow.resumes += 1),
  });
  return { body, budget, gone, flow };
}

function enveloped(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** `all` in chunks of the lengths given, the last of which is repeated. */
function cut(all: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0, i = 0; at < all.length; i++) {
    const length = lengths[Math.min(i, lengths.length - 1)] ?? 1;
    chunks.push(all.subarray(at, at + length));
    at += length;
  }
  return chunks;
}

const lengths = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 40 });
const messages = fc.array(fc.uint8Array({ maxLength: 500 }), { maxLength: 30 });

test('any cut of any messages gives the same bytes, and the reader whole messages alone', async () => {
  await fc.assert(
    fc.asyncProperty(messages, lengths, fc.boolean(), async (all, sizes, isLate) => {
      const { body, budget } = open(new EnvelopeEnds(1_000));
      const wanted = Buffer.concat(all.map(enveloped));
      const feed = async (): Promise<void> => {
        for (const chunk of cut(wanted, sizes)) {
          body.came(Uint8Array.from(chunk));
          if (isLate) await Promise.resolve();
        }
        body.ended();
      };
      const fed = feed();
      const given: Uint8Array[] = [];
      for await (const bytes of body) {
        for (let at = 0; at < bytes.length;) {
          const length = Buffer.from(bytes).readUInt32BE(at + 1);
          at += 5 + length;
          expect(at).toBeLessThanOrEqual(bytes.length);
        }
        given.push(bytes);
      }
      await fed;
      expect(Buffer.compare(Buffer.concat(given), wanted)).toBe(0);
      expect(budget.heldBytes).toBe(0);
    }),
    { numRuns: 200 },
  );
});

test('lines likewise; the last one needs no end', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.stringMatching(/^[a-z]{0,60}$/), { maxLength: 40 }),
      lengths,
      async (lines, sizes) => {
        const { body, budget } = open(new LineEnds(1_000));
        const wanted = Buffer.from(lines.join('\n'));
        for (const chunk of cut(wanted, sizes)) body.came(chunk);
        body.ended();
        const given: Uint8Array[] = [];
        for await (const bytes of body) given.push(bytes);
        expect(Buffer.concat(given).toString()).toBe(lines.join('\n'));
        expect(budget.heldBytes).toBe(0);
      },
    ),
    { numRuns: 100 },
  );
});

describe('a unit that is longer than may be', () => {
  test.each([
    ['a message', new EnvelopeEnds(10), enveloped(new Uint8Array(11)).subarray(0, 7)],
    ['a line', new LineEnds(10), Buffer.from('01234567890')],
  ])('%s is given at once, for its reader to refuse', async (_name, ends, bytes) => {
    const { body } = open(ends);
    body.came(bytes);
    const step = await body[Symbol.asyncIterator]().next();
    expect(step.value).toHaveLength(bytes.length);
  });
});

test('what is given counts until the reader asks for more, and what waits holds its client back', async () => {
  const { body, budget, flow } = open(new EnvelopeEnds(200_000));
  body.came(enveloped(new Uint8Array(100_000)));
  expect(flow.pauses).toBe(1);
  const reader = body[Symbol.asyncIterator]();
  await reader.next();
  expect(budget.heldBytes).toBeGreaterThan(100_000);
  const next = reader.next();
  await Promise.resolve();
  expect(flow.resumes).toBe(1);
  expect(budget.heldBytes).toBe(0);
  body.ended();
  expect((await next).done).toBe(true);
});

test('a body without room fails with the reason, and holds nothing', async () => {
  const { body, budget } = open(new EnvelopeEnds(200_000), 100_000);
  const reader = body[Symbol.asyncIterator]();
  const next = reader.next();
  body.came(enveloped(new Uint8Array(150_000)));
  await expect(next).rejects.toMatchObject({ reason: 'BODY_MEMORY_EXHAUSTED' });
  expect(budget.heldBytes).toBe(0);
  body.came(new Uint8Array(1_000));
  expect(budget.heldBytes).toBe(0);
});

test('a client that goes in the middle leaves nothing, and its reader is told', async () => {
  const { body, budget, gone } = open(new EnvelopeEnds(200_000));
  const next = body[Symbol.asyncIterator]().next();
  body.came(enveloped(new Uint8Array(9_000)).subarray(0, 5_000));
  expect(budget.heldBytes).toBeGreaterThan(5_000);
  gone.abort(new Error('gone'));
  await expect(next).rejects.toThrow('gone');
  expect(budget.heldBytes).toBe(0);
});

test('a body that nobody reads gives back what it held when its call is over', () => {
  const { body, budget } = open(new EnvelopeEnds(200_000));
  body.came(enveloped(new Uint8Array(9_000)));
  expect(budget.heldBytes).toBeGreaterThan(9_000);
  body.release();
  body.came(new Uint8Array(100));
  expect(budget.heldBytes).toBe(0);
});
