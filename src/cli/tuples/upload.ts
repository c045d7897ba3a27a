import { type IncomingMessage, request as openHttp } from 'node:http';
import { request as openHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import type { AppError } from '../../shared/app-error.ts';
import { headersOf, refusalOf, unavailable } from '../core/call.ts';
import type { ServiceConnection } from '../core/connection.ts';
import { isObject, type JsonRecord } from '../core/json-values.ts';

/** A request with its body and callbacks. */
export type Upload = {
  readonly path: string;
  readonly body: Readable;
  /** Called once the service is reached. */
  readonly onConnected: () => void;
  /** Converts an error of the body. */
  readonly bodyError: (error: unknown) => AppError;
};

/**
 * Sends lines of JSON to `path` of a service and returns its JSON. There is no time limit: `fetch`
 * gives up if no answer begins within five minutes. Errors: REFUSED, UNAVAILABLE, those of the
 * body.
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
    // The connection is not reused.
    agent: false,
    headers: {
      'content-type': 'application/x-ndjson',
      ...headersOf(connection),
    },
  });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.on('socket', (socket) => socket.once('connect', onConnected));
  outgoing.on('response', (response) => {
    // An answer may come before the end of the body, which is then no longer needed.
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
