import { fromBinary, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
  NotifyRequestSchema,
  NotifyRequestSchema as input,
  PutEndpointRequestSchema,
} from '../../gen/notify/v1/notify_service_pb.ts';
import { malformedMessage } from './malformed-message.ts';

/** What the reader throws about `json`. */
function thrownBy(json: JsonValue, schema: typeof input | typeof PutEndpointRequestSchema): Error {
  try {
    fromJson(schema, json);
  } catch (error) {
    return error as Error;
  }
  throw new Error('the reader takes it');
}

test('names the field or the key, and never quotes a value', () => {
  const secret = { signing_secret: 987_654_321 };
  const wrong = thrownBy(secret, PutEndpointRequestSchema);
  expect(wrong.message).toContain('987654321');
  const told = malformedMessage(wrong, {
    input: PutEndpointRequestSchema,
    isBinary: false,
    bytes: Buffer.from(JSON.stringify(secret)),
  });
  expect(told).toMatchObject({ reason: 'BODY_MALFORMED', metadata: { field: 'signing_secret' } });
  expect(told.message).not.toContain('987654321');
  const unknown = malformedMessage(thrownBy({ sort: 1 }, input), {
    input,
    isBinary: false,
    bytes: Buffer.from('{"sort":1}'),
  });
  expect(unknown.metadata).toEqual({ field: 'sort' });
});

test('an enum of a long body is BODY_MALFORMED, which names the field alone', () => {
  const json = { channels: ['CHANNEL_MAIL'] };
  const thrown = thrownBy(json, input);
  const bytes = Buffer.from(JSON.stringify(json));
  expect(malformedMessage(thrown, { input, isBinary: false, bytes }).reason).toBe('FIELD_INVALID');
  const long = Buffer.concat([bytes, Buffer.alloc(65_536, ' ')]);
  const told = malformedMessage(thrown, { input, isBinary: false, bytes: long });
  expect(told.reason).toBe('BODY_MALFORMED');
  expect(told.message).not.toContain('CHANNEL_MAIL');
});

test('of binary it says what it should be', () => {
  const bytes = Uint8Array.of(0xff);
  let thrown: unknown;
  try {
    fromBinary(input, bytes);
  } catch (error) {
    thrown = error;
  }
  expect(malformedMessage(thrown as Error, { input, isBinary: true, bytes })).toMatchObject({
    reason: 'BODY_MALFORMED',
    message: 'the body is no notify.v1.NotifyRequest',
    cause: thrown,
  });
});

const ALLOWED = 'must be CHANNEL_LIVE, CHANNEL_WEBHOOK, CHANNEL_EMAIL';
const CASES = [
  [NotifyRequestSchema, { channels: ['CHANNEL_LIVE', 'CHANNEL_MAIL'] }, 'channels[1]'],
  [NotifyRequestSchema, { title: 'x', data: { channel: 'a' }, channels: ['mail'] }, 'channels[0]'],
  [
    PutEndpointRequestSchema,
    { endpoint: { id: 'a', channel: 'CHANNEL_MAIL' } },
    'endpoint.channel',
  ],
] as const;

test.each(CASES)('%s: the field is named, and what is allowed', (schema, body, field) => {
  let error: unknown;
  try {
    fromJson(schema, JSON.parse(JSON.stringify(body)));
  } catch (thrown) {
    error = thrown;
  }
  const told = malformedMessage(error as Error, {
    input: schema,
    isBinary: false,
    bytes: Buffer.from(JSON.stringify(body)),
  });
  expect(told.reason).toBe('FIELD_INVALID');
  expect(told.metadata).toEqual({ field });
  expect(told.message.startsWith(`${field}: ${ALLOWED}`)).toBe(true);
  if (JSON.stringify(body).includes('CHANNEL_MAIL')) {
    expect(told.message).toContain('; did you mean CHANNEL_EMAIL?');
  }
});
