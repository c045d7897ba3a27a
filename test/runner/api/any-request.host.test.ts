import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeWorkspace, rawRequest, startRunner } from '../../support/runner.ts';

const FILES = {
  '.github/workflows/a.yml':
    'on: push\njobs: { a: { runs-on: none-such-os, steps: [{ run: "true" }] } }\n',
};
const word = fc.oneof(
  fc.constantFrom(
    'api',
    'runs',
    'logs',
    'artifacts',
    'secrets',
    'import',
    'variables',
    'sync',
    'config',
  ),
  fc.constantFrom(
    'workflows',
    'events',
    'health',
    'a',
    '../face',
    '%2e%2e',
    '%00',
    '%zz',
    '%ff',
    '',
    'x y',
  ),
  fc.string({ maxLength: 12, size: 'max' }).map((text) => encodeURIComponent(text)),
);
const path = fc.oneof(
  fc.array(word, { maxLength: 5 }).map((words) => `/${words.join('/')}`),
  fc.array(word, { maxLength: 3 }).map((words) => `/api/${words.join('/')}`),
);
const query = fc.oneof(
  fc.constant(''),
  fc.constantFrom(
    '?limit=-1',
    '?limit=1&limit=2',
    '?status=x',
    '?tail=1e9',
    '?env=%00',
    '?since=now',
  ),
  fc.string({ maxLength: 12, size: 'max' }).map((text) => `?${encodeURIComponent(text)}`),
);
const body = fc.oneof(
  fc.constant(''),
  fc.json(),
  fc
    .dictionary(
      fc.constantFrom(
        'workflow',
        'inputs',
        'sandbox',
        'value',
        'content',
        'environment',
        'host',
        'enabled',
      ),
      fc.jsonValue(),
    )
    .map((fields) => JSON.stringify(fields)),
);
const request = fc.record({
  method: fc.constantFrom(
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'DELETE',
    'OPTIONS',
    'PATCH',
    'TRACE',
    'get',
    'X',
  ),
  path,
  query,
  body,
  type: fc.constantFrom('application/json', 'text/plain', ''),
});

test('no request makes the runner fail, hang or tell what is inside', async () => {
  const { runner, url, workspace, logLines } = await startRunner(makeWorkspace(FILES));
  await fc.assert(
    fc.asyncProperty(request, async (given) => {
      const bytes = Buffer.from(given.body);
      const target = `${given.path}${given.query}`.replaceAll(' ', '%20');
      const type = given.type === '' ? '' : `Content-Type: ${given.type}\r\n`;
      const answer = await rawRequest(
        runner.port,
        `${given.method} ${target} HTTP/1.1\r\nHost: localhost:${runner.port}\r\n${type}` +
          `Content-Length: ${bytes.length}\r\nConnection: close\r\n\r\n${bytes.toString('latin1')}`,
      );
      const status = Number(answer.slice(9, 12));
      expect(status).toBeGreaterThanOrEqual(200);
      // Synchronisation asks a code host that is not there.
      if (status >= 500) expect(given.path).toContain('sync');
      expect(status).not.toBe(500);
      if (status >= 400) expect(answer).not.toContain(workspace);
    }),
    { numRuns: 250 },
  );
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect(logLines().filter(({ msg }) => msg === 'request_failed')).toEqual([]);
}, 120_000);
