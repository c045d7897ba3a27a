import { fromBinary, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
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
