import { describe, expect, type TestContext, test } from 'vitest';
import { LOADS_UWS, PARSERS } from '../support/http1-parsers.ts';
import { startServer, RawClient, rawCheck, waitFor, type TestServer } from './start-server.ts';
import { endsLater, type ExpectedLater, type Message, MESSAGES } from './strict-messages.ts';

/*
 * Every message as the first, the 2nd and the 40th of a connection, with another behind it in the same segment, and
 * in two segments. STRICT_ALL_SPLITS=1 splits at every byte (a minute); else each message at some, all positions in
 * turn over the table. Once with uWebSockets.js behind the first request of a connection, and once with node:http alone.
 */

const CONNECTIONS_AT_ONCE = 400;
const SPLITS_PER_MESSAGE = process.env['STRICT_ALL_SPLITS'] === '1' ? Number.MAX_SAFE_INTEGER : 6;
const NEXT_SEGMENT_MS = 3;
type Parser = (typeof PARSERS)[number];

const firstOf = (message: Message, parser: Parser): ExpectedLater =>
  parser === 'node' ? message.onNode : message.first;
const laterOf = (message: Message, parser: Parser): ExpectedLater =>
  parser === 'node' ? message.onNode : message.later;

/** A server of one test, which is told as it is one of several that run at once. */
async function start(context: TestContext, parser: Parser): Promise<TestServer> {
  const target = await startServer({ http1: parser });
  context.onTestFinished(() => target.server.stop(0));
  return target;
}

type Answers = {
  readonly statuses: readonly number[];
  readonly isClosed: boolean;
  readonly received: string;
};

/** What came back for `parts`, each a segment of its own, once the connection is closed or answered. */
async function answersTo(
  target: TestServer,
  parts: readonly string[],
  answers: number,
  before = 0,
): Promise<Answers> {
  const client = new RawClient(target.port);
  client.socket.setNoDelay(true);
  try {
    for (let i = 1; i <= before; i++) {
      client.socket.write(rawCheck('before'));
      await waitFor(() => client.isClosed || statusesOf(client.received).length >= i);
    }
    expect(statusesOf(client.received), 'requests before').toEqual(
      Array.from({ length: before }, () => 200),
    );
    client.received = '';
    for (const [i, part] of parts.entries()) {
      if (i > 0) await new Promise((resolve) => setTimeout(resolve, NEXT_SEGMENT_MS));
      client.socket.write(part, 'latin1');
    }
    await waitFor(() => client.isClosed || statusesOf(client.received).length >= answers);
    const { received, isClosed } = client;
    return { statuses: statusesOf(received), isClosed, received };
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

function isExpected(expected: ExpectedLater, { statuses, isClosed }: Answers): boolean {
  const [status] = statuses;
  if (expected === 'unanswered') return status === undefined && isClosed;
  if (expected === 'refused') return status === 400 || status === 431 || status === 505;
  return status === expected;
}

function isRefusal(expected: ExpectedLater): boolean {
  return expected === 'refused' || expected === 505 || expected === 'unanswered';
}

/** The relation of the request behind a message: what is begun has its name. */
const markOf = ({ name }: Message): string => `behind ${name}`;
const shown = (wrong: readonly unknown[]): string[] => wrong.map((it) => JSON.stringify(it));

test('the table has eighty messages, no two alike; what is lost has a name', () => {
  expect(MESSAGES.length).toBeGreaterThanOrEqual(80);
  expect(new Set(MESSAGES.map(({ text }) => text)).size).toBe(MESSAGES.length);
  const unnamed = MESSAGES.filter(({ first, later, lost }) => first !== later && lost === '');
  expect(unnamed.map(({ name }) => name)).toEqual([]);
});

describe.each(PARSERS)('first requests, %s', (parser) => {
  test('each as the first of a connection', { timeout: 120_000 }, async (context) => {
    const target = await start(context, parser);
    const wrong: unknown[] = [];
    await forAll(MESSAGES, async (message) => {
      const answers = await answersTo(target, [message.text], 1);
      const expected = firstOf(message, parser);
      const isNamed = answers.received.toLowerCase().includes('uwebsockets');
      if (!isExpected(expected, answers) || isNamed) {
        wrong.push({ name: message.name, expected, ...answers });
      }
    });
    expect(shown(wrong)).toEqual([]);
  });

  test(
    'each in two segments, split at bytes of all positions',
    { timeout: 600_000 },
    async (context) => {
      const target = await start(context, parser);
      const cases: { readonly message: Message; readonly at: number }[] = [];
      for (const [row, message] of MESSAGES.entries()) {
        const step = Math.max(1, Math.floor(message.text.length / SPLITS_PER_MESSAGE));
        for (let at = 1 + (row % step); at < message.text.length; at += step)
          cases.push({ message, at });
      }
      const wrong: unknown[] = [];
      await forAll(cases, async ({ message, at }) => {
        const { name, text } = message;
        const answers = await answersTo(target, [text.slice(0, at), text.slice(at)], 1);
        const expected = firstOf(message, parser);
        if (!isExpected(expected, answers)) wrong.push({ name, at, expected, ...answers });
      });
      expect(shown(wrong)).toEqual([]);
    },
  );

  test(
    'behind each refused message nothing is taken for a request',
    { timeout: 120_000 },
    async (context) => {
      const target = await start(context, parser);
      const refused = MESSAGES.filter((message) => isRefusal(firstOf(message, parser)));
      const wrong: unknown[] = [];
      await forAll(refused, async (message) => {
        const { name, text } = message;
        const answers = await answersTo(target, [text + rawCheck('a', markOf(message))], 2);
        const { statuses, isClosed } = answers;
        if (!isExpected('refused', answers) || statuses.length > 1 || !isClosed) {
          wrong.push({ name, statuses, isClosed });
        }
      });
      expect(shown(wrong)).toEqual([]);
      expect(target.begun.filter((relation) => relation.startsWith('behind'))).toEqual([]);
    },
  );

  test('well-formed requests behind each other in one segment are answered in order', async (context) => {
    const target = await start(context, parser);
    const served = MESSAGES.filter(
      (message) => firstOf(message, parser) === 200 && message.closes !== true,
    );
    const wrong: unknown[] = [];
    await forAll(served, async ({ name, text }) => {
      const { statuses } = await answersTo(target, [text + rawCheck('reason:NOT_FOUND') + text], 3);
      const [before, between, behind] = statuses;
      if (statuses.length !== 3 || before !== 200 || between === 200 || behind !== 200) {
        wrong.push({ name, statuses });
      }
    });
    expect(shown(wrong)).toEqual([]);
  });

  test('sixty in one segment are answered in order', async (context) => {
    const target = await start(context, parser);
    const names = Array.from({ length: 60 }, (_, i) => `one-of-many-${i}`);
    const text = names.map((name) => rawCheck('a', name)).join('');
    const { statuses } = await answersTo(target, [text], names.length);
    expect(statuses).toEqual(names.map(() => 200));
    expect(target.begun).toEqual(names);
  });

  test('what is refused is refused in the form of other errors', async (context) => {
    const target = await start(context, parser);
    const refused = MESSAGES.filter((message) => isRefusal(firstOf(message, parser)));
    const wrong: unknown[] = [];
    await forAll(refused, async ({ name, text }) => {
      const client = new RawClient(target.port);
      context.onTestFinished(() => void client.socket.destroy());
      client.socket.write(text, 'latin1');
      await client.closed;
      const body = client.received.slice(client.received.indexOf('\r\n\r\n') + 4);
      const error = JSON.parse(body) as { code?: unknown; message?: unknown };
      if (error.code !== 'invalid_argument' || typeof error.message !== 'string')
        wrong.push({ name, body });
    });
    expect(wrong).toEqual([]);
  });

  test('a body that turns out malformed while its request waits is refused in turn', async (context) => {
    const target = await start(context, parser);
    const client = new RawClient(target.port);
    context.onTestFinished(() => void client.socket.destroy());
    const head = rawCheck('a', 'malformed').split('content-length')[0] ?? '';
    const malformed = `${head}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\nnonsense\r\n\r\n`;
    client.socket.write(rawCheck('wait:20', 'first') + rawCheck('a', 'second') + malformed);
    await client.closed;
    expect(statusesOf(client.received)).toEqual([200, 200, 400]);
    expect(target.begun).toEqual(['first', 'second']);
  });

  test('behind an answer that came before its body, what is malformed is refused in turn', async (context) => {
    const target = await start(context, parser);
    const health = 'GET /healthz HTTP/1.1\r\nhost: x\r\n';
    const text = `${health}content-length: 1\r\n\r\nx${health}\r\nnonsense\r\n\r\n`;
    const { statuses } = await answersTo(target, [text], 3);
    expect(statuses).toEqual([200, 200, 400]);
  });

  test('a body that turns out malformed behind its answer is no second answer', async (context) => {
    const target = await start(context, parser);
    const client = new RawClient(target.port);
    context.onTestFinished(() => void client.socket.destroy());
    client.socket.write(
      'PUT /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n',
    );
    await client.until('405');
    client.socket.write('nonsense\r\n\r\n');
    await client.closed;
    expect(statusesOf(client.received)).toEqual([405]);
  });
});

/** Requests that come while one waits for its answer, on uWebSockets.js. */
describe('behind a request that waits', () => {
  test.runIf(LOADS_UWS)(
    'nothing is done twice or out of order, and the connection ends',
    async (context) => {
      const target = await start(context, 'uws');
      const client = new RawClient(target.port);
      context.onTestFinished(() => void client.socket.destroy());
      client.socket.write(rawCheck('a', 'first'));
      await client.until('"allowed":true');
      const names = Array.from({ length: 60 }, (_, i) => `later-${i}`);
      client.socket.write(names.map((name) => rawCheck('wait:50', name)).join(''));
      await client.closed;
      const expected = ['first', ...names];
      expect(target.begun).toEqual(expected.slice(0, target.begun.length));
      expect(statusesOf(client.received).length).toBeLessThanOrEqual(target.begun.length);
      await waitFor(() => target.server.inFlightCount === 0);
    },
  );

  test.runIf(LOADS_UWS)('of those that are answered at once all are, in order', async (context) => {
    const target = await start(context, 'uws');
    const health = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n';
    const unknown = health.replace('healthz', 'nowhere');
    const text = (health + unknown).repeat(30);
    const { statuses } = await answersTo(target, [text], 60, 1);
    expect(statuses).toEqual(Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? 200 : 404)));
  });

  test('node:http answers all of them in order', async (context) => {
    const target = await start(context, 'node');
    const names = Array.from({ length: 60 }, (_, i) => `later-${i}`);
    const text = names.map((name) => rawCheck('wait:1', name)).join('');
    const { statuses } = await answersTo(target, [text], 60, 1);
    expect(statuses).toEqual(names.map(() => 200));
    expect(target.begun).toEqual(['viewer', ...names]);
  });
});

// Most of their time they wait for connections that are closed as idle ones.
describe.concurrent.each(PARSERS)('later requests, %s', (parser) => {
  test.for([2, 40])(
    'each as number %i of a connection: what is refused is never served',
    { timeout: 120_000 },
    async (nth, context) => {
      const target = await start(context, parser);
      const wrong: unknown[] = [];
      await forAll(MESSAGES, async (message) => {
        const { name, text } = message;
        const expected = laterOf(message, parser);
        // An answer that is none ends the connection.
        const count = isRefusal(expected) ? 2 : 1;
        const answers = await answersTo(target, [text], count, nth - 1);
        const isOne = answers.statuses.length === (expected === 'unanswered' ? 0 : 1);
        if (!isExpected(expected, answers) || !isOne) wrong.push({ name, expected, ...answers });
      });
      expect(shown(wrong)).toEqual([]);
    },
  );

  test(
    'behind each refused message nothing is taken for a request',
    { timeout: 120_000 },
    async (context) => {
      const target = await start(context, parser);
      const ending = MESSAGES.filter((message) =>
        parser === 'node' ? isRefusal(message.onNode) : endsLater(message),
      );
      const wrong: unknown[] = [];
      await forAll(ending, async (message) => {
        const marked = message.text + rawCheck('a', markOf(message));
        const { statuses, isClosed } = await answersTo(target, [marked], 2, 1);
        if (statuses.length > 1 || !isClosed)
          wrong.push({ name: message.name, statuses, isClosed });
      });
      expect(shown(wrong)).toEqual([]);
      expect(target.begun.filter((relation) => relation.startsWith('behind'))).toEqual([]);
    },
  );
});

const CODED_BODIES: Readonly<Record<string, (body: string) => string>> = {
  'a chunk': (body) => `${sizeOf(body)}\r\n${body}\r\n0\r\n\r\n`,
  'an extension': (body) => `${sizeOf(body)};a=b\r\n${body}\r\n0\r\n\r\n`,
  'an extension of digits': (body) => `${sizeOf(body)}\r\n${body}\r\n0;1\r\n\r\n`,
  'a trailer': (body) => `${sizeOf(body)}\r\n${body}\r\n0\r\nx-sum: 1\r\n\r\n`,
  'a trailer like a request': (body) =>
    `${sizeOf(body)}\r\n${body}\r\n0\r\nGET /healthz HTTP/1.1\r\n\r\n`,
  'bare LF': (body) => `${sizeOf(body)}\n${body}\r\n0\n\n`,
  'no end': (body) => `${sizeOf(body)}\r\n${body}\r\n`,
};
const sizeOf = (body: string): string => body.length.toString(16);
/** More than the buffers of a connection hold. */
const OBJECTS = 500_000;

type Route = {
  readonly line: string;
  readonly body: string;
  /** Its answer is larger than all buffers, and nothing of it is read before the next request is sent. */
  readonly isLarge?: boolean;
};
const SERVICE = 'POST /workspace.v1.AuthzService';
const ROUTES: Readonly<Record<string, Route>> = {
  'a Check that waits': {
    line: `${SERVICE}/Check`,
    body: '{"object_id":"stuck:100","relation":"coded","subject_user_id":"alice"}',
  },
  'a Check': { line: `${SERVICE}/Check`, body: '{"relation":"coded","subject_user_id":"alice"}' },
  'an unknown path': { line: 'POST /nowhere', body: 'x' },
  'a wrong verb': { line: 'PUT /healthz', body: 'x' },
  'a health check': { line: 'GET /healthz', body: 'x' },
  'a large answer': {
    line: `${SERVICE}/ListObjects`,
    body: `{"namespace":"d","relation":"n${OBJECTS}","subject_user_id":"u"}`,
    isLarge: true,
  },
};

/** RFC 9112 §7.1: who misreads where chunks end takes what is behind them for something else. */
describe
  .runIf(LOADS_UWS)
  .concurrent('nothing is served behind a body in chunks of a later request', () => {
    test.for(['the same', 'a later'] as const)(
      'in %s segment',
      { timeout: 120_000 },
      async (segment, context) => {
        const wrong = await Promise.all(
          Object.keys(ROUTES).map((route) => servedBehindChunks(context, route, segment)),
        );
        expect(shown(wrong.flat())).toEqual([]);
      },
    );
  });

/** What came of all forms of a body at one route that it should not have. */
async function servedBehindChunks(
  context: TestContext,
  route: string,
  segment: 'the same' | 'a later',
): Promise<unknown[]> {
  const { line, body, isLarge = false } = ROUTES[route] as Route;
  const target = await start(context, 'uws');
  const head = `${line} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const wrong: unknown[] = [];
  await forAll(
    Object.entries(CODED_BODIES).slice(0, isLarge ? 1 : undefined),
    async ([form, encode]) => {
      const client = new RawClient(target.port);
      context.onTestFinished(() => void client.socket.destroy());
      const { socket } = client;
      socket.setNoDelay(true).write(rawCheck('before', 'before'));
      await client.until('"allowed":true');
      client.received = '';
      const behind = rawCheck('a', `behind ${form}`);
      if (isLarge) socket.pause();
      socket.write(head + encode(body) + (segment === 'the same' ? behind : ''));
      if (isLarge) {
        await waitFor(() => target.server.inFlightCount > 0 || target.server.connectionCount === 0);
        socket.write(behind);
        socket.resume();
      } else if (segment === 'a later') {
        await new Promise((resolve) => setTimeout(resolve, NEXT_SEGMENT_MS));
        socket.write(behind);
      }
      await waitFor(() => client.isClosed || client.received !== '');
      if (!client.isClosed) socket.write(behind);
      await client.closed;
      const statuses = statusesOf(client.received);
      if (statuses.length > 1) wrong.push({ route, form, statuses });
    },
  );
  const behind = target.begun.filter((relation) => relation.startsWith('behind'));
  return [...wrong, ...behind.map((name) => ({ route, name }))];
}
