import http from 'node:http';
import { afterAll, expect, test } from 'vitest';
import { sharedInstance } from '../support/shared-instance.ts';
import { linesOf, plainTuples } from './support.ts';

/* A body that is held back, or refused in its middle, leaves its connection fit for the next request. */

const instance = await sharedInstance();
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
afterAll(() => agent.destroy());

function post(
  path: string,
  type: string,
  body: string | Buffer,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      `${instance.baseUrl}${path}`,
      {
        agent,
        method: 'POST',
        headers: {
          authorization: `Bearer ${instance.token}`,
          'content-type': type,
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const check = (): Promise<{ status: number; text: string }> =>
  post(
    '/workspace.v1.AuthzService/Check',
    'application/json',
    JSON.stringify({
      namespace: 'doc',
      object_id: 'd1',
      relation: 'viewer',
      subject_user_id: 'user-1',
      project_id: instance.projectId,
      tenant_id: 'kept',
    }),
  );

test('after an import that was taken, and ones that were refused at once or late', async () => {
  const good = linesOf(plainTuples(30_000));
  const path = `/v1/tuples:import?project_id=${instance.projectId}&tenant_id=kept`;
  const type = 'application/x-ndjson';
  expect((await post(path, type, good)).status).toBe(200);
  expect(await check()).toMatchObject({ status: 200, text: '{"allowed":true}' });
  expect((await post(path, type, `not json\n${good}`)).status).toBe(400);
  expect((await check()).status).toBe(200);
  expect((await post(path, type, `${good}not json\n`)).status).toBe(400);
  expect((await check()).status).toBe(200);
  expect((await post(`${path}&unknown=1`, type, good)).status).toBe(400);
  expect((await check()).status).toBe(200);
  expect((await post(path, 'text/plain', good)).status).toBe(415);
  expect((await check()).status).toBe(200);
});

test('after a client stream of Connect whose first message is refused', async () => {
  const message = Buffer.from('{"tuples":[]}');
  const envelope = Buffer.alloc(5);
  envelope.writeUInt32BE(message.length, 1);
  const stream = Buffer.concat(
    Array.from({ length: 100_000 }, () => Buffer.concat([envelope, message])),
  );
  const path = '/gatehouse.v1.TupleService/ImportTuples';
  const { status, text } = await post(path, 'application/connect+json', stream);
  expect(status).toBe(200);
  expect(text).toContain('options');
  expect((await check()).status).toBe(200);
});
