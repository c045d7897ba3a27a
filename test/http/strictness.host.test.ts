import { expect, onTestFinished, test } from 'vitest';
import { startServer, RawClient, rawCheck, waitFor, type TestServer } from './start-server.ts';
import { MESSAGES, type Expected, type Message } from './strict-messages.ts';

/*
 * Every message as the first, the 2nd and the 100th of a connection, with another behind it in the same segment, and
 * in two segments. STRICT_ALL_SPLITS=1 splits at every byte (a minute); else each message at some, all positions in
 * turn over the table.
 */

const CONNECTIONS_AT_ONCE = 110;
const SPLITS_PER_MESSAGE = process.env['STRICT_ALL_SPLITS'] === '1' ? Number.MAX_SAFE_INTEGER : 6;
const NEXT_SEGMENT_MS = 3;

async function start(): Promise<TestServer> {
  const target = await startServer();
  onTestFinished(() => target.server.stop(0));
  return target;
}

/** What came back for `parts`, each a segment of its own, once the connection is closed or answered. */
async function answersTo(
  target: TestServer,
  parts: readonly string[],
  answers: number,
): Promise<{ readonly statuses: readonly number[]; readonly isClosed: boolean }> {
  const client = new RawClient(target.port);
  client.socket.setNoDelay(true);
  try {
    for (const [i, part] of parts.entries()) {
      if (i > 0) await new Promise((resolve) => setTimeout(resolve, NEXT_SEGMENT_MS));
      client.socket.write(part, 'latin1');
    }
    await waitFor(() => client.isClosed || statusesOf(client.received).length >= answers);
    return { statuses: statusesOf(client.received), isClosed: client.isClosed };
  } finally {
    client.socket.destroy();
  }
}

/** Status lines, wherever a body ends. */
function statusesOf(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
}

/** Runs `work` for each, some at a time. */
async function forAll<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const worker = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: CONNECTIONS_AT_ONCE }, worker));
}

function isExpected(expected: Expected, status: number | undefined): boolean {
  return expected === 'refused' ? status === 400 || status === 431 : status === expected;
}

test('the table has eighty messages, no two alike', () => {
  expect(MESSAGES.length).toBeGreaterThanOrEqual(80);
  expect(new Set(MESSAGES.map(({ text }) => text)).size).toBe(MESSAGES.length);
});

test('each as the first of a connection', { timeout: 120_000 }, async () => {
  const target = await start();
  const wrong: unknown[] = [];
  await forAll(MESSAGES, async ({ name, text, expected }) => {
    const { statuses } = await answersTo(target, [text], 1);
    if (!isExpected(expected, statuses[0])) wrong.push({ name, expected, statuses });
  });
  expect(wrong.map((it) => JSON.stringify(it))).toEqual([]);
});

test('each in two segments, split at bytes of all positions', { timeout: 600_000 }, async () => {
  const target = await start();
  const cases: { readonly message: Message; readonly at: number }[] = [];
  for (const [row, message] of MESSAGES.entries()) {
    const step = Math.max(1, Math.floor(message.text.length / SPLITS_PER_MESSAGE));
    for (let at = 1 + (row % step); at < message.text.length; at += step)
      cases.push({ message, at });
  }
  const wrong: unknown[] = [];
  await forAll(cases, async ({ message: { name, text, expected }, at }) => {
    const { statuses } = await answersTo(target, [text.slice(0, at), text.slice(at)], 1);
    if (!isExpected(expected, statuses[0])) wrong.push({ name, at, expected, statuses });
  });
  expect(wrong.map((it) => JSON.stringify(it))).toEqual([]);
});

test(
  'behind each refused message nothing is taken for a request',
  { timeout: 120_000 },
  async () => {
    const target = await start();
    const refused = MESSAGES.filter(({ expected }) => expected === 'refused');
    const wrong: unknown[] = [];
    await forAll(refused, async ({ name, text }) => {
      const { statuses, isClosed } = await answersTo(target, [text + rawCheck('behind')], 2);
      if (!isExpected('refused', statuses[0]) || statuses.length > 1 || !isClosed) {
        wrong.push({ name, statuses, isClosed });
      }
    });
    expect(wrong.map((it) => JSON.stringify(it))).toEqual([]);
  },
);

test('well-formed requests behind each other in one segment are answered in order', async () => {
  const target = await start();
  const served = MESSAGES.filter(({ expected, closes }) => expected === 200 && closes !== true);
  const wrong: unknown[] = [];
  await forAll(served, async ({ name, text }) => {
    const { statuses } = await answersTo(target, [text + rawCheck('reason:NOT_FOUND') + text], 3);
    if (
      statuses.length !== 3 ||
      statuses[0] !== 200 ||
      statuses[1] === 200 ||
      statuses[2] !== 200
    ) {
      wrong.push({ name, statuses });
    }
  });
  expect(wrong.map((it) => JSON.stringify(it))).toEqual([]);
});

test.each([2, 100])(
  'each as number %i of a connection: what is refused is never served',
  { timeout: 120_000 },
  async (nth) => {
    const target = await start();
    const wrong: unknown[] = [];
    await forAll(MESSAGES, async ({ name, text, expected }) => {
      const client = new RawClient(target.port);
      try {
        for (let i = 1; i < nth; i++) {
          client.socket.write(rawCheck('before'));
          await waitFor(() => client.isClosed || statusesOf(client.received).length >= i);
        }
        const before = statusesOf(client.received).length;
        if (before !== nth - 1) wrong.push({ name, before });
        client.received = '';
        client.socket.write(text, 'latin1');
        await waitFor(() => client.isClosed || statusesOf(client.received).length > 0);
        const statuses = statusesOf(client.received);
        if (!isExpected(expected, statuses[0])) wrong.push({ name, expected, statuses });
        if (expected === 'refused') await client.closed;
      } finally {
        client.socket.destroy();
      }
    });
    expect(wrong.map((it) => JSON.stringify(it))).toEqual([]);
  },
);

test('answers do not name the software that makes them', async () => {
  const target = await start();
  const client = new RawClient(target.port);
  onTestFinished(() => void client.socket.destroy());
  client.socket.write(rawCheck('a'));
  await client.until('"allowed":true');
  expect(client.received.toLowerCase()).not.toContain('uwebsockets');
});

test('several requests in one segment behind another are answered in order', async () => {
  const target = await start();
  const client = new RawClient(target.port);
  onTestFinished(() => void client.socket.destroy());
  client.socket.write(rawCheck('a', 'first'));
  await client.until('"allowed":true');
  const names = Array.from({ length: 60 }, (_, i) => `later-${i}`);
  client.socket.write(names.map((name) => rawCheck('a', name)).join(''));
  await waitFor(() => client.isClosed || statusesOf(client.received).length === 61);
  expect(target.begun).toEqual(['first', ...names]);
});

test('what is refused is refused in the form of other errors', async () => {
  const target = await start();
  const wrong: unknown[] = [];
  await forAll(MESSAGES, async ({ name, text, expected }) => {
    if (![400, 431, 505, 'refused'].includes(expected)) return;
    const client = new RawClient(target.port);
    onTestFinished(() => void client.socket.destroy());
    client.socket.write(text, 'latin1');
    await client.closed;
    const body = client.received.slice(client.received.indexOf('\r\n\r\n') + 4);
    const error = JSON.parse(body) as { code?: unknown; message?: unknown };
    if (error.code !== 'invalid_argument' || typeof error.message !== 'string')
      wrong.push({ name, body });
  });
  expect(wrong).toEqual([]);
});

test('a body that turns out malformed behind its answer is no second answer', async () => {
  const target = await start();
  const client = new RawClient(target.port);
  client.socket.write(
    'PUT /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n',
  );
  await client.until('405');
  client.socket.write('nonsense\r\n\r\n');
  await client.closed;
  expect(statusesOf(client.received)).toEqual([405]);
});
