import { expect, test } from 'vitest';
import { HeaderFields } from '../exchange/header-fields.ts';
import type { RawResponse } from '../exchange/raw-message.ts';
import { HTTP_LIMITS_DEFAULT } from '../http-limits.ts';
import type { SocketPeek } from '../socket-peek.ts';
import type { UwsApp, UwsRawRequest, UwsRawResponse } from './uws-binary.ts';
import { UwsListener } from './uws-listener.ts';

type Setters = Pick<UwsApp, 'setIdleTimeout' | 'setResponseTimeout'>;

type Taken = { readonly head: string; readonly corks: number };

/** A build of uWebSockets.js that has `setters` and is given one request, which `take` answers: the head of the answer, and how often it was corked. */
async function takenBy(
  take: (res: RawResponse) => void,
  setters: Setters = {},
  http1IdleMs = 120_000,
): Promise<Taken> {
  let handle: ((res: UwsRawResponse, req: UwsRawRequest) => void) | undefined;
  const app = {
    ...setters,
    any: (_pattern: string, handler: typeof handle) => (handle = handler),
    filter: () => undefined,
  } as unknown as UwsApp;
  const listener = new UwsListener(
    { App: () => app },
    {
      limits: { ...HTTP_LIMITS_DEFAULT, http1IdleMs },
      fields: new HeaderFields(),
      peek: {} as SocketPeek,
      take,
      routes: [],
    },
  );
  expect(listener.connectionCount).toBe(0);
  let head = '';
  let corks = 0;
  const ended = Promise.withResolvers<void>();
  handle?.(
    {
      writeHeader: (name: string, value: string) => (head += `${name}: ${value}`),
      cork: (handler: () => void) => {
        corks += 1;
        handler();
      },
      end: () => ended.resolve(),
    } as unknown as UwsRawResponse,
    {
      forEach: (onField: (name: string, value: string) => void) => onField('host', 'x'),
      getCaseSensitiveMethod: () => 'GET',
    } as unknown as UwsRawRequest,
  );
  await ended.promise;
  return { head, corks };
}

const atOnce = (res: RawResponse): void => void res.cork(() => res.end('x'));

test('an answer that is given while its request is taken is corked already, a later one is corked', async () => {
  expect((await takenBy(atOnce)).corks).toBe(0);
  expect((await takenBy((res) => setImmediate(() => atOnce(res)))).corks).toBe(1);
});

test('a build without a setter: answers state what is safe, whatever is set', async () => {
  expect((await takenBy(atOnce)).head).toBe('keep-alive: timeout=8');
});

test.each([
  [120_000, 120],
  [1_000, 4],
  [3_600_000, 900],
])(
  'a build that can set the idle time: %i ms are stated as %i s, and closed a step later',
  async (ms, seconds) => {
    const set: Record<string, number> = {};
    const setters: Setters = {
      setIdleTimeout: (value) => (set['idle'] = value),
      setResponseTimeout: (value) => (set['response'] = value),
    };
    const { head } = await takenBy(atOnce, setters, ms);
    expect(head).toBe(`keep-alive: timeout=${seconds}`);
    expect(set).toEqual({ idle: seconds + 4, response: seconds + 4 });
  },
);
