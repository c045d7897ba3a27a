import { request } from 'node:http';
import http2 from 'node:http2';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RULES } from '../../src/gateway/callers/method-rules.ts';
import { type Service, startService } from '../support/service.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

/** Declared, and never sent: whoever waits for it does not answer within the test. */
const DECLARED_BYTES = '8000000';
const TOKEN = 'reaches-nothing';
const METHODS = [...RULES.entries()].filter(([, { needs }]) => needs.length > 0);

let service: Service;
beforeAll(async () => {
  const callers = [{ name: 'nobody', tokens: [TOKEN], scopes: [] }];
  service = await startService({
    postgres: 'shared',
    env: { GATEWAY_CALLERS: JSON.stringify({ callers }) },
  });
});
afterAll(async () => {
  await service.stop();
});

function headersOf(contentType: string): Record<string, string> {
  return {
    'content-type': contentType,
    authorization: `Bearer ${TOKEN}`,
    'x-admin-secret': service.adminSecret,
  };
}

/** Sends the head alone; the status and the text of the answer. */
function askHttp1(path: string, contentType: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(`${service.baseUrl}${path}`, {
      method: 'POST',
      headers: { ...headersOf(contentType), 'content-length': DECLARED_BYTES },
    });
    asked.once('error', reject);
    asked.once('response', (answer) => {
      let text = '';
      answer.setEncoding('latin1');
      answer.on('data', (part: string) => (text += part));
      answer.once('end', () => {
        resolve({ status: answer.statusCode ?? 0, text });
        asked.destroy();
      });
    });
    asked.flushHeaders();
  });
}

/** As `askHttp1`; the code of gRPC. */
function askGrpc(session: http2.ClientHttp2Session, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      ...headersOf('application/grpc'),
    });
    const look = (fields: http2.IncomingHttpHeaders): void => {
      const code = fields['grpc-status'];
      if (typeof code !== 'string') return;
      resolve(code);
      stream.close();
    };
    stream.once('error', reject);
    stream.on('response', look);
    stream.on('trailers', look);
    stream.resume();
  });
}

test('no method waits for the body of a caller without a scope for it', async () => {
  expect(METHODS.length).toBeGreaterThan(50);
  for (const [path] of METHODS) {
    const connect = await askHttp1(path, 'application/json');
    // A method that streams takes no unary type.
    if (connect.status !== 415) {
      expect([path, connect.status]).toEqual([path, 403]);
      expect(connect.text).toContain('SCOPE_REFUSED');
    }
    const web = await askHttp1(path, 'application/grpc-web+proto');
    expect([path, web.text]).toEqual([path, expect.stringContaining('grpc-status: 7')]);
  }
});

test('nor over gRPC', async () => {
  const session = http2.connect(service.baseUrl);
  try {
    for (const [path] of METHODS) expect([path, await askGrpc(session, path)]).toEqual([path, '7']);
  } finally {
    session.destroy();
  }
});

test('nor does the import of lines', async () => {
  const answer = await askHttp1('/v1/tuples:import?project_id=p', 'application/x-ndjson');
  expect(answer.status).toBe(403);
  expect(answer.text).toContain('SCOPE_REFUSED');
});

test('a small gzip body of millions of items by such a caller stalls nobody', async () => {
  const body = gzipSync(`{"project_id":"p","items":[${'{},'.repeat(2_700_000)}{}]}`);
  const { pid, metricsUrl, baseUrl } = service;
  const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
    const answer = await fetch(`${baseUrl}/workspace.v1.AuthzService/BatchCheck`, {
      method: 'POST',
      headers: { ...headersOf('application/json'), 'content-encoding': 'gzip' },
      body,
    });
    expect(answer.status).toBe(403);
    await answer.text();
  });
  printToll('gzip of 2.7 million items, without a scope', toll);
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
});
