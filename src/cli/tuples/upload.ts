import { type IncomingMessage, request as openHttp } from 'node:http';
import { request as openHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import type { AppError } from '../../shared/app-error.ts';
import { headersOf, refusalOf, unavailable } from '../core/call.ts';
import type { ServiceConnection } from '../core/connection.ts';
import { isObject, type JsonRecord } from '../core/json-values.ts';

/** Body to send, and callbacks. */
export type Upload = {
  readonly path: string;
  readonly body: Readable;
  /** The service was reached. */
  readonly onConnected: () => void;
  /** Converts an error of the body. */
  readonly bodyError: (error: unknown) => AppError;
};

/**
 * Sends lines of JSON to `path` of a service, and answers its JSON, however long both take: `fetch` gives up when no answer
 * begins within five minutes. Errors: REFUSED, UNAVAILABLE, those of the body.
 */
export async function upload(connection: ServiceConnection, sent: Upload): Promise<JsonRecord> {
  const response = await answerTo(connection, sent);
  const text = await textOf(response).catch((error: unknown) => {
    throw unavailable(connection, error);
  });
  const document = jsonOf(text);
  if (response.statusCode === 200 && document !== undefined) return document;
  throw refusalOf(connection, response.statusCode ?? 0, text);
}

async function answerTo(
  connection: ServiceConnection,
  { path, body, onConnected, bodyError }: Upload,
): Promise<IncomingMessage> {
  const { url } = connection;
  const open = url.startsWith('https:') ? openHttps : openHttp;
  const outgoing = open(`${url}${path}`, {
    method: 'POST',
    // No other request follows on the connection.
    agent: false,
    headers: {
      'content-type': 'application/x-ndjson',
      ...headersOf(connection),
    },
  });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.on('socket', (socket) => socket.once('connect', onConnected));
  outgoing.on('response', (response) => {
    // It may come before all is sent: nothing more is wanted then.
    body.unpipe(outgoing);
    resolve(response);
  });
  outgoing.on('error', (error) => reject(unavailable(connection, error)));
  body.on('error', (error) => {
    reject(bodyError(error));
    outgoing.destroy();
  });
  body.pipe(outgoing);
  return await promise.finally(() => body.destroy());
}

function jsonOf(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
