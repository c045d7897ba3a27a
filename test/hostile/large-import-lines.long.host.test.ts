import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
});

const members = Object.fromEntries(Array.from({ length: 300_000 }, (_, i) => [`member${i}`, i]));
const tuple = { namespace: 'workspace', object_id: 'o', relation: 'member' };
const subject = { user_id: 'u' };
const many = Array.from({ length: 60_000 }, (_, i) =>
  JSON.stringify({ ...tuple, object_id: `o${i}`, subject }),
);

const BODIES: readonly (readonly [string, string, number, string])[] = [
  [
    'a line with parameters of 300,000 members',
    JSON.stringify({ ...tuple, condition_params: members }),
    429,
    'line 1',
  ],
  ['a line of lists of 4 million levels', '['.repeat(4_000_000), 429, 'line 1'],
  ['a line of 2.7 million empty objects', `[${'{},'.repeat(2_600_000)}{}]`, 429, 'line 1'],
  ['8 million empty lines', '\n'.repeat(8_000_000), 200, 'received'],
  ['60,000 tuples, a line each', many.join('\n'), 200, '"received":"60000"'],
];

for (const [name, body, status, text] of BODIES) {
  test(`${name} stalls nobody`, async () => {
    const { pid, metricsUrl, baseUrl, token } = service;
    const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
      const answers = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const response = await fetch(`${baseUrl}/v1/tuples:import?dry_run=true`, {
            method: 'POST',
            headers: { 'content-type': 'application/x-ndjson', authorization: `Bearer ${token}` },
            body: `${body}\n`,
          });
          return [response.status, await response.text()];
        }),
      );
      for (const answer of answers) expect(answer).toEqual([status, expect.stringContaining(text)]);
    });
    printToll(`import: ${name}, 4 at once`, toll);
    expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  });
}
