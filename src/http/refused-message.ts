import type { RawResponse } from './raw-message.ts';

/** As much as uWebSockets.js gathers of an answer while it parses. */
const HELD_BACK = ' '.repeat(16_384);

/** The body of the answer to a message that is refused for its form. */
export function refusedMessageBody(problem: string): string {
  return `{"code":"invalid_argument","message":${JSON.stringify(problem)},"details":[]}`;
}

/**
 * Answers 400 and drops the connection of uWebSockets.js at once, before what follows can be taken for a request.
 * Inside the handler only. An answer is held back there until all that has come is parsed, unless it is longer than
 * what is held back: hence the blanks behind the body.
 */
export function refuseMessage(res: RawResponse, problem: string): void {
  const body = refusedMessageBody(problem);
  res.writeStatus('400 Bad Request');
  res.writeHeader('content-type', 'application/json');
  const rest = `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}${HELD_BACK}`;
  res.writeHeader('connection', `close\r\n${rest}`);
  res.close();
}
