import { expect, test } from 'vitest';
import { HeaderFields } from '../exchange/header-fields.ts';
import { HTTP_LIMITS_DEFAULT } from '../http-limits.ts';
import type { SocketPeek } from '../socket-peek.ts';
import type { UwsApp, UwsRawRequest, UwsRawResponse } from './uws-binary.ts';
import { UwsListener } from './uws-listener.ts';

type Setters = Pick<UwsApp, 'setIdleTimeout' | 'setResponseTimeout'>;

/** A build of uWebSockets.js that has `setters`; the head that it is given for the answer to one request. */
function headOf(setters: Setters, http1IdleMs: number): string {
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
      take: (res) => res.end('x'),
      routes: [],
    },
  );
  expect(listener.connectionCount).toBe(0);
  let head = '';
  handle?.(
    {
      writeHeader: (name: string, value: string) => (head += `${name}: ${value}`),
      end: () => undefined,
    } as unknown as UwsRawResponse,
    {
      forEach: (onField: (name: string, value: string) => void) => onField('host', 'x'),
      getCaseSensitiveMethod: () => 'GET',
    } as unknown as UwsRawRequest,
  );
  return head;
}

test('a build without a setter: answers state what is safe, whatever is set', () => {
  expect(headOf({}, 120_000)).toBe('keep-alive: timeout=8');
});

test.each([
  [120_000, 120],
  [1_000, 4],
  [3_600_000, 900],
])(
  'a build that can set the idle time: %i ms are stated as %i s, and closed a step later',
  (ms, seconds) => {
    const set: Record<string, number> = {};
    const head = headOf(
      {
        setIdleTimeout: (value) => (set['idle'] = value),
        setResponseTimeout: (value) => (set['response'] = value),
      },
      ms,
    );
    expect(head).toBe(`keep-alive: timeout=${seconds}`);
    expect(set).toEqual({ idle: seconds + 4, response: seconds + 4 });
  },
);
