import { fromBinary, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
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
  const told = malformedMessage(wrong, { input: PutEndpointRequestSchema, isBinary: false });
  expect(told).toMatchObject({ reason: 'BODY_MALFORMED', metadata: { field: 'signing_secret' } });
  expect(told.message).not.toContain('987654321');
  const unknown = malformedMessage(thrownBy({ sort: 1 }, input), { input, isBinary: false });
  expect(unknown.metadata).toEqual({ field: 'sort' });
});

test('an enum without the bytes is BODY_MALFORMED, which names the field alone', () => {
  const json = { channels: ['CHANNEL_MAIL'] };
  const thrown = thrownBy(json, input);
  const bytes = Buffer.from(JSON.stringify(json));
  expect(malformedMessage(thrown, { input, isBinary: false, bytes }).reason).toBe('FIELD_INVALID');
  // As Connect throws it, where Connect read the message of an envelope.
  const passed = new ConnectError(thrown.message, Code.InvalidArgument);
  const told = malformedMessage(passed, { input, isBinary: false });
  expect(told.reason).toBe('BODY_MALFORMED');
  expect(told.message).not.toContain('CHANNEL_MAIL');
});

test('of binary it says what it should be', () => {
  let thrown: unknown;
  try {
    fromBinary(input, Uint8Array.of(0xff));
  } catch (error) {
    thrown = error;
  }
  expect(malformedMessage(thrown as Error, { input, isBinary: true })).toMatchObject({
    reason: 'BODY_MALFORMED',
    message: 'the body is no notify.v1.NotifyRequest',
    cause: thrown,
  });
  expect(malformedMessage(thrown as Error, { input: undefined, isBinary: true }).message).toBe(
    'the body is no message',
  );
});
