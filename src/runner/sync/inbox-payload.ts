import { StringDecoder } from 'node:string_decoder';
import { countJson, type DocumentBounds } from '../../decoding/json-count.ts';
import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import { DECODE_TURNS, runInSlices } from '../../shared/slice-queue.ts';
import { objectOf } from './cache-entry.ts';
import { formField } from './form-field.ts';

/**
 * What the payload of a delivery may hold, so that parsing it holds nobody up: some 40 ms at most. A push of 2,048 commits, as many as a
 * code host lists, with twenty names of files each has 120,000 values, 300 different names and 4 MiB.
 */
export const PAYLOAD_BOUNDS: DocumentBounds = {
  bytesMax: 8 * 1_048_576,
  valuesMax: 200_000,
  namesMax: 8_192,
};
const FORM = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;
/** Bytes of text that are decoded in one go. */
const DECODED_BYTES = 1_048_576;

/**
 * The payload in the body of a delivery, as JSON or as the field `payload` of a form. It is looked through in slices before anything is
 * built of it. Errors: BODY_TOO_LARGE beyond PAYLOAD_BOUNDS, INVALID_JSON; none repeats anything of the body.
 */
export async function parsePayload(contentType: string, rawBody: Uint8Array): Promise<JsonObject> {
  const bytes = FORM.test(contentType)
    ? await runInSlices(formField(rawBody, 'payload'), DECODE_TURNS)
    : Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  try {
    await runInSlices(countJson(bytes, PAYLOAD_BOUNDS), DECODE_TURNS);
  } catch (error) {
    if (error instanceof AppError && error.reason === 'FIELD_TOO_LARGE') {
      throw new AppError('BODY_TOO_LARGE', `the payload: ${error.message}`, {}, error);
    }
    const problem = 'the payload is nested too deep, or has a number too long';
    throw new AppError('INVALID_JSON', problem, {}, error);
  }
  const text = await textOf(bytes);
  await DECODE_TURNS.turn();
  let payload: unknown;
  try {
    payload = JSON.parse(text);
  } catch {
    // The parser's message quotes the body.
    throw new AppError('INVALID_JSON', 'the body is not JSON');
  }
  const object = objectOf(payload);
  if (object === undefined) throw new AppError('INVALID_JSON', 'the payload is not an object');
  return object as JsonObject;
}

/** As `toString` reads UTF-8, some of it a turn. */
async function textOf(bytes: Buffer): Promise<string> {
  const decoder = new StringDecoder('utf8');
  let text = '';
  for (let from = 0; from < bytes.length; from += DECODED_BYTES) {
    if (from > 0) await DECODE_TURNS.turn();
    text += decoder.write(bytes.subarray(from, from + DECODED_BYTES));
  }
  return text + decoder.end();
}
