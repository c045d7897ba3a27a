import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DecisionReader } from '../../src/gateway/hot/decision-reader.ts';
import { HOT_METHODS } from '../../src/gateway/hot/hot-methods.ts';
import { RawDecisions } from '../../src/gateway/hot/raw-decisions.ts';
import { ReadScopes } from '../../src/gateway/reads/read-scopes.ts';
import { BodyBudget } from '../../src/http/bodies/body-budget.ts';
import { BodyPool } from '../../src/http/bodies/body-pool.ts';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import { TokenCodec } from '../../src/model/consistency-token.ts';
import type { RawAnswer, ReadScope } from '../../src/protocol/shard-client.ts';
import type { ProjectSettings } from '../../src/services/projects/project-settings.ts';
import { ReadPositions } from '../../src/services/reads/read-positions.ts';
import { AppError, errorToData } from '../../src/shared/app-error.ts';
import type { IndexRow } from '../../src/store/sql/reads/read-index.ts';
import { callersOf } from '../support/callers.ts';
import { LOADS_UWS } from '../support/http1-parsers.ts';
import { indexOver, rowAt } from '../support/read-index.ts';

/*
 * The hot path over a real read index, whose connection answers when the test says so; projects and workers
 * are the test's. Nobody but it serves the general path.
 */

const SETTINGS: ProjectSettings = {
  projectId: 'p',
  suspended: false,
  dataRegion: '',
  regionServed: true,
  readBudget: 10,
  version: 1,
  modelVersion: 1,
  modelJson: '',
  writeRules: 0,
  pendingJson: '',
  refusesUnknown: false,
};
const codec = new TokenCodec({ key: Buffer.alloc(32, 1), rememberMax: 100 });
const shard = { projectId: 'p', tenantId: '' };
const hot = HOT_METHODS[0];
if (hot === undefined) throw new Error('there are hot methods');

async function serve(answers: readonly RawAnswer[] = [{ kind: 'allowed' }]) {
  const held: ((rows: readonly IndexRow[]) => void)[] = [];
  const { headRevisions: heads, index } = indexOver([
    (asks) =>
      new Promise((resolve) => {
        held.push((rows) => resolve(rows.length > 0 ? rows : asks.map((_, at) => rowAt(at, 5))));
      }),
  ]);
  const reloads: number[] = [];
  const known: { settings: ProjectSettings | undefined } = { settings: SETTINGS };
  const scopes = new ReadScopes({
    settingsSource: {
      peek: () => known.settings,
      known: () => known.settings,
      load: () => Promise.resolve(SETTINGS),
      settings: () => Promise.resolve(SETTINGS),
      confirm: (_, version) => (version === SETTINGS.version ? SETTINGS : undefined),
      atLeast: (_, version) => Promise.resolve({ ...SETTINGS, version }),
      mustBeAtLeast: (_, version) => void reloads.push(version),
      guard: () => undefined,
      resolveId: (id) => id,
    },
    positions: new ReadPositions({ codec, headRevisions: heads, index }),
    index,
    isAlone: () => false,
  });
  const asked: ReadScope[] = [];
  let general = 0;
  const failures: string[] = [];
  const path = new RawDecisions({
    callers: callersOf(),
    shards: {
      refusalBefore: () => null,
      raw: (_method, _format, _body, scope, _expected, onAnswer) => {
        const answer = answers[asked.push(scope) - 1] ?? { kind: 'allowed' };
        queueMicrotask(() => onAnswer(answer));
        return { cancel: () => undefined };
      },
    },
    scopes,
    versions: { peek: () => undefined },
    meter: {
      ended: () => undefined,
      failed: (_rpc, error) => void failures.push((error as AppError).reason),
    },
    general: {
      handleHttp1: (exchange) => exchange.sendEmpty(500),
      handleBuffered: (exchange) => {
        general += 1;
        exchange.sendEmpty(418);
      },
    },
    bodyBytesMax: 1024 * 1024,
    bodyBudget: new BodyBudget(),
    reader: new DecisionReader({}),
    compressMinBytes: 1024,
    timeoutMsMax: 60_000,
  });
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  server.route('POST', hot?.path ?? '', (exchange) => path.handle(exchange, hot ?? never()));
  const { port } = await server.listen();
  onTestFinished(async () => {
    index.stop();
    await server.stop(0);
  });
  const check = async (token = '', headers: Record<string, string> = {}): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${hot?.path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ project_id: 'p', at_least_consistency_token: token }),
    });
    return `${response.status} ${await response.text()}`;
  };
  /** As many reads wait, and where any do the database was asked. */
  const waiting = (count: number) =>
    expect.poll(() => [index.waitingCount, count === 0 || held.length > 0]).toEqual([count, true]);
  const reply = (rows: readonly IndexRow[] = []): void => held.shift()?.(rows);
  const counts = { asked, failures, reloads, general: () => general, queries: () => held.length };
  return { ...counts, port, index, heads, known, check, waiting, reply };
}

function never(): never {
  throw new Error('there are hot methods');
}

const token = (revision: number, epoch = 1): string => codec.encode(shard, epoch, revision);
const failure = (reason: string, metadata: Record<string, string> = {}): RawAnswer => ({
  kind: 'error',
  error: errorToData(new AppError(reason, 'not now', metadata)),
});

test('a read without a token waits for the head and stays on the hot path', async () => {
  const { check, waiting, reply, asked, general } = await serve();
  const answer = check();
  await waiting(1);
  expect(asked).toEqual([]);
  reply();
  expect(await answer).toBe('200 {"allowed":true}');
  expect(asked).toMatchObject([{ epoch: 1, minRevision: 5, forkId: '35', isHeldOnly: false }]);
  expect(general()).toBe(0);
});

test('a token of a history that is known to be lost is not answered from what a worker holds of it', async () => {
  const { check, waiting, reply, asked, heads, general } = await serve();
  const first = check();
  await waiting(1);
  reply();
  await first;
  heads.raise('p', '', 2, 1);
  const second = check(token(4));
  await waiting(1);
  reply([rowAt(0, 5, { epoch: 2 })]);
  // The general path says why not.
  expect(await second).toMatch(/^418/);
  expect([asked.length, general()]).toEqual([1, 1]);
});

test('a token within what is known asks nobody, and for no more than it names', async () => {
  const { check, waiting, reply, asked, queries } = await serve();
  const first = check();
  await waiting(1);
  reply();
  await first;
  expect(await check(token(3))).toBe('200 {"allowed":true}');
  expect(asked[1]).toMatchObject({ epoch: 1, minRevision: 3, forkId: '', isHeldOnly: false });
  expect(queries()).toBe(0);
});

test('a token beyond what is known is answered by the owner if it is there, and else asks', async () => {
  const behind = failure('SHARD_BEHIND');
  const { check, waiting, reply, asked, general } = await serve([{ kind: 'denied' }, behind]);
  expect(await check(token(4))).toBe('200 {"allowed":false}');
  expect(asked[0]).toMatchObject({ epoch: 1, minRevision: 4, isHeldOnly: true });
  const answer = check(token(4));
  await waiting(1);
  reply();
  expect(await answer).toBe('200 {"allowed":true}');
  expect(asked[2]).toMatchObject({ minRevision: 5, isHeldOnly: false });
  expect(general()).toBe(0);
});

test.each([
  ['beyond the head', token(6)],
  ['of another epoch', token(1, 2)],
])('a token %s is refused by the general path, once the head is known', async (_, text) => {
  const { check, waiting, reply } = await serve([failure('SHARD_BEHIND')]);
  const answer = check(text);
  await waiting(1);
  reply();
  expect(await answer).toBe('418 ');
});

test('what is no token, or of a project that is not known, is not waited for', async () => {
  const { check, known, index } = await serve();
  known.settings = undefined;
  expect(await check()).toBe('418 ');
  expect(index.waitingCount).toBe(0);
});

test('newer settings are loaded before the read goes on', async () => {
  const { check, waiting, reply, asked } = await serve();
  const answer = check();
  await waiting(1);
  reply([rowAt(0, 5, { settingsVersion: 9 })]);
  expect(await answer).toBe('200 {"allowed":true}');
  expect(asked).toMatchObject([{ settingsVersion: 9 }]);
});

test('an answer that needs newer settings is not given; the general path asks again', async () => {
  const old = failure('SETTINGS_OLD', { version: '4' });
  const { check, waiting, reply, reloads } = await serve([old]);
  const answer = check();
  await waiting(1);
  reply();
  expect(await answer).toBe('418 ');
  expect(reloads).toEqual([4]);
});

test('a deadline holds while the read waits', async () => {
  const { check, waiting, failures } = await serve();
  expect(await check('', { 'connect-timeout-ms': '40' })).toContain('deadline_exceeded');
  await waiting(0);
  expect(failures).toEqual(['DEADLINE_EXCEEDED']);
});

// Memory is lent for bodies of uWebSockets.js.
test.runIf(LOADS_UWS)(
  '10,000 callers that go while they wait leave no waiter, and no memory lent',
  async () => {
    const given = vi.spyOn(BodyPool.prototype, 'acquire');
    const returned = vi.spyOn(BodyPool.prototype, 'returned');
    onTestFinished(() => {
      given.mockRestore();
      returned.mockRestore();
    });
    const { port, index, reply, asked } = await serve();
    const body = JSON.stringify({ project_id: 'p', namespace: 'x'.repeat(4_000) });
    const head = `POST ${hot.path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    const text = `${head}content-length: ${body.length}\r\n\r\n${body}`;
    const TOGETHER = 250;
    for (let round = 0; round < 40; round++) {
      const sockets: Socket[] = [];
      for (let i = 0; i < TOGETHER; i++) {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.write(text);
        sockets.push(socket);
      }
      // They give up at their own time, also before the server has read them.
      if (round % 2 === 0)
        await expect.poll(() => index.waitingCount, { interval: 5 }).toBe(TOGETHER);
      await Promise.all(
        sockets.map(
          (socket) =>
            new Promise<void>((gone) => {
              socket.once('close', () => gone());
              socket.destroy();
            }),
        ),
      );
      await expect.poll(() => index.waitingCount, { interval: 5 }).toBe(0);
      reply();
    }
    const lent = given.mock.results.filter(({ value }) => value !== null).length;
    expect(lent).toBeGreaterThanOrEqual(20 * TOGETHER);
    expect(returned.mock.calls.length).toBe(lent);
    expect(asked).toEqual([]);
  },
  120_000,
);
