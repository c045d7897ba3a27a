/* The text of errors as gRPC carries it: percent-encoded UTF-8 in `grpc-message`, which clients decode. */
import http2 from 'node:http2';
import { expect, onTestFinished, test } from 'vitest';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { SERVICE_TOKEN } from './support/notify-process.ts';
import { serveNotify } from './support/notify-service.ts';

const PATH = '/notify.v1.NotifyService/Notify';
const HEADERS = {
  'content-type': 'application/grpc+json',
  authorization: `Bearer ${SERVICE_TOKEN}`,
  te: 'trailers',
};

test('the text of an error is shown as it was written, whatever its characters', async () => {
  const service = await serveNotify();
  const session = http2.connect(service.internalUrl);
  onTestFinished(() => session.destroy());
  for (const key of ['a#b%41', 'grüße 100 %', '日本 🎉', '%', '%zz', 'a+b&c=d']) {
    const body = envelope(0, Buffer.from(JSON.stringify({ [key]: 1 })));
    const { fields } = await callHttp2(session, PATH, HEADERS, [body]);
    const sent = fields['grpc-message'] ?? '';
    // What may stand there unencoded, and no other percent sign than that of an encoded byte.
    expect(sent).toMatch(/^(?:[ -$&-~]|%[0-9A-F]{2})*$/);
    const text = `the body is no JSON of notify.v1.NotifyRequest; it has no field ${key}`;
    expect([fields['grpc-status'], decodeURIComponent(sent)]).toEqual(['3', text]);
  }
});
