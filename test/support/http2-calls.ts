import type http2 from 'node:http2';

/** What came back: headers and trailers as one, since an error of gRPC may have its status in either. */
export type Http2Answer = {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The code that the stream was reset with, 0 for none. */
  readonly resetCode: number;
};

/** Sends one POST, each of `parts` as a frame of its own, and waits until its stream has closed. */
export function callHttp2(
  session: http2.ClientHttp2Session,
  path: string,
  headers: Readonly<Record<string, string>>,
  parts: readonly Uint8Array[],
): Promise<Http2Answer> {
  const { promise, resolve } = Promise.withResolvers<Http2Answer>();
  const stream = session.request({ ':method': 'POST', ':path': path, ...headers });
  const fields: Record<string, string> = {};
  const chunks: Buffer[] = [];
  const keep = (found: http2.IncomingHttpHeaders): void => {
    for (const [name, value] of Object.entries(found)) fields[name] = String(value);
  };
  stream.on('response', keep);
  stream.on('trailers', keep);
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('error', () => undefined);
  stream.on('close', () => {
    const { ':status': status, date: _date, ...rest } = fields;
    const body = Buffer.concat(chunks);
    resolve({ status: Number(status), fields: rest, body, resetCode: stream.rstCode });
  });
  for (const part of parts) stream.write(part);
  stream.end();
  return promise;
}

/** A message in an envelope of gRPC. */
export function envelope(flags: number, message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
