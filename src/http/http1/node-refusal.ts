import type { IncomingMessage } from 'node:http';
import type { HeaderFields } from '../exchange/header-fields.ts';
import type { NodeRequest } from './node-message.ts';

/** A status with which a message is refused for its form. */
export type RefusedStatus = 400 | 405 | 417 | 431 | 505;

const STATUS_OF_ERROR: Readonly<Record<string, RefusedStatus>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_INVALID_VERSION: 505,
};
/** The text of each refusal. */
export const PROBLEMS: Readonly<Record<RefusedStatus, string>> = {
  400: 'the message is none that RFC 9112 allows',
  405: 'Method Not Allowed',
  417: 'Expect may be 100-continue alone',
  431: 'the head is too long',
  505: 'the version of HTTP is another one',
};

/** The status for an error of node:http's parser, by its code. */
export function statusOfError(code: string): RefusedStatus {
  return STATUS_OF_ERROR[code] ?? 400;
}

/** Reads the fields of a message that node:http let pass. Returns the status and text of its refusal, or null. */
export function refusalOf(
  message: NodeRequest,
  request: IncomingMessage,
  fields: HeaderFields,
): readonly [RefusedStatus, string] | null {
  const { httpVersionMajor, httpVersionMinor } = request;
  if (httpVersionMajor !== 1 || httpVersionMinor > 1) return [505, PROBLEMS[505]];
  const problem = message.hasTarget ? fields.read(message) : 'the target is no path';
  if (problem !== '') return [400, problem];
  if (httpVersionMinor === 0 && fields.isChunked) return [400, 'HTTP/1.0 has no chunks'];
  const { expectation } = fields;
  if (expectation === '' || expectation === '100-continue') return null;
  return [417, PROBLEMS[417]];
}
