import { describe, expect, test } from 'vitest';
import { AppError } from '../../shared/app-error.ts';
import { FrameBatch, piecesOf } from '../events/event-frames.ts';
import { EventRing } from '../events/event-ring.ts';
import { RunFeed } from '../events/run-feed.ts';
import type { WorkflowRun } from '../model/run.ts';
import { emptyAnswer } from './answer.ts';
import { attachmentHeader } from './artifact-routes.ts';
import { BodyFields } from './body-fields.ts';
import { rangeOf } from './byte-range.ts';
import { errorAnswer } from './error-answer.ts';
import { IdempotencyKeys } from './idempotency.ts';
import { Router, type ApiRoute } from './router.ts';

function route(method: ApiRoute['method'], pattern: string): ApiRoute {
  return { method, pattern, handle: () => emptyAnswer(204) };
}

describe('routes', () => {
  const router = new Router([
    route('PUT', '/s/:name'),
    route('DELETE', '/s/:name'),
    route('GET', '/s/status'),
    route('GET', '/s/:name/x'),
    route('GET', '/s/:name/:other'),
  ]);

  test('a plain segment wins over a parameter, each method for itself', () => {
    expect(router.match('GET', '/s/status')).toMatchObject({ route: { pattern: '/s/status' } });
    expect(router.match('HEAD', '/s/status')).toMatchObject({ route: { pattern: '/s/status' } });
    expect(router.match('PUT', '/s/status')).toMatchObject({ parameters: { name: 'status' } });
    expect(router.match('GET', '/s/a/x')).toMatchObject({ route: { pattern: '/s/:name/x' } });
    expect(router.match('GET', '/s/a/y')).toMatchObject({ parameters: { name: 'a', other: 'y' } });
  });

  test('parameters are decoded once, after the path was split', () => {
    expect(router.match('PUT', '/s/a%2Fb%2520')).toMatchObject({ parameters: { name: 'a/b%20' } });
    expect(() => router.match('PUT', '/s/%ff')).toThrow('percent-encoding');
    expect(router.match('PUT', '/s/')).toEqual({ kind: 'none' });
    expect(router.match('PUT', '/s/a/')).toEqual({ kind: 'none' });
    expect(router.match('PUT', '//s/a')).toEqual({ kind: 'none' });
  });

  test('a wrong method is told what is possible', () => {
    expect(router.match('POST', '/s/status')).toEqual({
      kind: 'wrong_method',
      allow: 'DELETE, GET, HEAD, OPTIONS, PUT',
    });
    expect(router.match('get', '/s/status')).toMatchObject({ kind: 'wrong_method' });
  });
});

describe('bodies', () => {
  test('each field is asked for, others are refused by name', () => {
    const fields = new BodyFields({ a: 'x', b: true, c: ['1'], d: { e: 'f' }, z: 1 });
    expect(fields.requiredText('a', 10)).toBe('x');
    expect(fields.flag('b')).toBe(true);
    expect(fields.texts('c', 1, 1)).toEqual(['1']);
    expect(fields.object('d')?.choice('e', ['f', 'g'])).toBe('f');
    expect(() => fields.end()).toThrow('z: no such field');
  });

  test.each([
    [() => new BodyFields(null), 'the body must be a JSON object'],
    [() => new BodyFields([]), 'the body must be a JSON object'],
    [() => new BodyFields({ a: null }).text('a', 1), 'a: must be a string'],
    [() => new BodyFields({ a: 'xy' }).text('a', 1), 'a: must have at most 1 characters'],
    [() => new BodyFields({}).requiredText('a', 1), 'a: is required'],
    [() => new BodyFields({ a: '' }).requiredText('a', 1), 'a: must not be empty'],
    [() => new BodyFields({ a: 'x' }).flag('a'), 'a: must be true or false'],
    [() => new BodyFields({ a: 'x' }).choice('a', ['y']), 'a: must be one of y'],
    [() => new BodyFields({ a: 'x' }).texts('a', 1, 1), 'a: must be a list of strings'],
    [() => new BodyFields({ a: ['x', 1] }).texts('a', 2, 1), 'a[1]: must be a string of 1 to 1'],
    [() => new BodyFields({ a: ['x', 'y'] }).texts('a', 1, 1), 'a: must have at most 1 entries'],
    [() => new BodyFields({ a: { b: 1 } }).object('a')?.end(), 'a.b: no such field'],
    [
      () => new BodyFields({ b: 1 }).end(new Map([['b', 'a.b']])),
      'b: no such field here; it is a.b',
    ],
    [() => new BodyFields({ a: 1 }).object('a'), 'a must be a JSON object'],
  ])('%s', (read, message) => {
    expect(read).toThrow(message);
  });
});

test('ranges', () => {
  expect(rangeOf('bytes=0-0', 10)).toEqual({ start: 0, end: 0 });
  expect(rangeOf('Bytes=2-', 10)).toEqual({ start: 2, end: 9 });
  expect(rangeOf('bytes=-4', 10)).toEqual({ start: 6, end: 9 });
  for (const header of [
    '',
    'bytes',
    'bytes=-',
    'bytes=5-2',
    'bytes=1-2,4-5',
    'bytes=a-b',
    'bytes=1-2-3',
  ]) {
    expect(rangeOf(header, 10)).toBeUndefined();
  }
  expect(() => rangeOf('bytes=0-', 0)).toThrow('0 bytes');
});

test('names of downloads stay in their header', () => {
  for (const name of [
    'a"b',
    'a\r\nX-Evil: 1',
    'a\\b',
    'a/b',
    'ü',
    'a%0d%0a',
    '\u{1F600}',
    "it's (1)*",
  ]) {
    const header = attachmentHeader(name);
    expect(header).toMatch(
      /^attachment; filename="[^"\\\r\n]*"; filename\*=UTF-8''[A-Za-z0-9!#$&+.^_`|~%-]*$/,
    );
    expect(decodeURIComponent(header.slice(header.indexOf("''") + 2))).toBe(name);
  }
});

test('an error that nobody foresaw tells nothing', () => {
  for (const error of [new Error('secret'), 'secret', new AppError('WORKER_LOST', 'secret')]) {
    const { answer, isFault, code } = errorAnswer(error, 'r-1');
    expect([isFault, code]).toEqual([true, 'internal']);
    expect(answer).toMatchObject({
      status: 500,
      body: '{"error":{"code":"internal","message":"internal error","requestId":"r-1"}}',
    });
  }
});

test('frames are cut from any place, pieces hold all lines', () => {
  const place = { runId: 'r', jobId: 'j', stepNumber: 1 };
  const lines = Array.from({ length: 200 }, (_, i) => `a\n\n"${i}`);
  const batch = FrameBatch.ofLines(place, { lines, bytes: 1 }, 'e', 11);
  for (const seq of [11, 12, 75, 210]) {
    const text = batch.bytesFrom(seq).toString();
    expect(text.startsWith(`id: e-${seq}\nevent: step.log\ndata: {"runId":"r"`)).toBe(true);
    expect(text.split('\n\n')).toHaveLength(211 - seq + 1);
  }
  const pieces = [...piecesOf(lines, 1_000)];
  expect(pieces.flatMap((piece) => piece.lines)).toEqual(lines);
  expect(pieces.length).toBeGreaterThan(10);
  expect([...piecesOf([], 10)]).toEqual([]);
});

test('the ring keeps the newest frames, at most so many bytes', () => {
  const ring = new EventRing(10, 1_000_000);
  const place = { runId: 'r', jobId: 'j', stepNumber: 1 };
  let seq = 1;
  for (let i = 0; i < 5_000; i++) {
    ring.add(FrameBatch.ofLines(place, { lines: ['a', 'b', 'c'], bytes: 30 }, 'e', seq));
    seq += 3;
  }
  expect(ring.frameCount).toBe(12);
  expect(ring.oldest(seq)).toBe(seq - 12);
  expect(ring.find(seq - 1)?.firstSeq).toBe(seq - 3);
  expect(ring.find(seq - 12)?.firstSeq).toBe(seq - 12);
  expect(ring.find(seq)).toBeUndefined();
  ring.add(FrameBatch.ofLines(place, { lines: ['x'], bytes: 2_000_000 }, 'e', seq));
  expect(ring.frameCount).toBe(1);
});

test('a feed that nobody reads forgets lines and says so', async () => {
  const feed = new RunFeed();
  const lines = ['x'.repeat(1_000)];
  for (let i = 0; i < 2_000; i++)
    feed.push({ kind: 'lines', jobId: 'j', stepNumber: 1, first: i, lines });
  feed.push({ kind: 'end' });
  expect(await feed.next()).toEqual({ kind: 'lost' });
  let last = await feed.next();
  let count = 0;
  for (; last.kind === 'lines'; count++) last = await feed.next();
  expect(last.kind).toBe('end');
  expect(count).toBeLessThan(1_100);
});

test('keys outlive the process, for a day, the newest of them', async () => {
  const records: object[] = [];
  const file = {
    append: (record: object): Promise<void> => {
      records.push(record);
      return Promise.resolve();
    },
    async *oldestFirst(): AsyncGenerator {
      await Promise.resolve();
      yield { nonsense: true };
      yield* records;
    },
  };
  let nowMs = 1_000_000;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const open = (): Promise<IdempotencyKeys> => IdempotencyKeys.open(clock, file, () => undefined);
  const started = (id: string) => () =>
    Promise.resolve({ run: { id } as WorkflowRun, headers: [] as string[] });
  const known = (id: string): { run: WorkflowRun; headers: string[] } | undefined =>
    id === 'gone' ? undefined : { run: { id } as WorkflowRun, headers: ['replayed', 'true'] };
  const keys = await open();
  expect((await keys.once('k', 'body', started('1'), known)).run.id).toBe('1');
  const after = await open();
  expect((await after.once('k', 'body', started('2'), known)).run.id).toBe('1');
  await expect(after.once('k', 'other', started('2'), known)).rejects.toThrow('another body');
  nowMs += 24 * 60 * 60 * 1000 + 1;
  expect((await after.once('k', 'other', started('3'), known)).run.id).toBe('3');
  await after.once('g', 'body', started('gone'), known);
  expect((await after.once('g', 'body', started('4'), known)).run.id).toBe('4');
  const failing = (): Promise<never> => Promise.reject(new AppError('QUEUE_FULL', 'full'));
  await expect(after.once('f', 'body', failing, known)).rejects.toThrow('full');
  expect((await after.once('f', 'body', started('5'), known)).run.id).toBe('5');
});
