import { Pool } from 'undici';

const FAILURE_BYTES_MAX = 300;

export type Reply = { readonly status: number; readonly body: Buffer };

/** What is wrong with an answer that should be 200 and `isRight`; undefined when nothing is. */
export function failureOf(
  reply: Reply | undefined,
  error: Error | undefined,
  isRight: (body: Buffer) => boolean = () => true,
): string | undefined {
  if (reply === undefined) return `no answer: ${error?.message ?? ''}`;
  const text = (): string => reply.body.subarray(0, FAILURE_BYTES_MAX).toString();
  if (reply.status !== 200) return `HTTP ${reply.status}: ${text()}`;
  return isRight(reply.body) ? undefined : `wrong: ${text()}`;
}

/** Answer of one request; `error` is a transport failure, not an HTTP status. */
export type OnReply = (reply: Reply | undefined, error?: Error) => void;

/** Posts JSON to one service over a fixed number of keep-alive connections, one request each at a time. */
export class LoadClient {
  readonly #pool: Pool;
  readonly #headers: Record<string, string>;

  constructor(options: { baseUrl: string; connections: number; token?: string | undefined }) {
    this.#pool = new Pool(options.baseUrl, { connections: options.connections, pipelining: 1 });
    this.#headers = { 'content-type': 'application/json' };
    if (options.token !== undefined) this.#headers['authorization'] = `Bearer ${options.token}`;
  }

  /** Sends one request; calls back exactly once. Requests beyond the free connections wait in order. */
  post(
    path: string,
    body: string | Buffer,
    onReply: OnReply,
    headers?: Record<string, string>,
  ): void {
    const chunks: Buffer[] = [];
    let status = 0;
    this.#pool.dispatch(
      {
        path,
        method: 'POST',
        body,
        headers: headers === undefined ? this.#headers : { ...this.#headers, ...headers },
      },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, statusCode) => {
          status = statusCode;
        },
        onResponseData: (_controller, chunk) => {
          chunks.push(chunk);
        },
        onResponseEnd: () => {
          onReply({
            status,
            body: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks),
          });
        },
        onResponseError: (_controller, error) => {
          onReply(undefined, error);
        },
      },
    );
  }

  /** One call with a JSON answer. Errors: throws with the status and body of anything but 200. */
  async call(
    path: string,
    message: unknown,
    headers?: Record<string, string>,
  ): Promise<Record<string, unknown>> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const onReply: OnReply = (reply, error) => {
      if (reply === undefined) reject(error ?? new Error('no reply'));
      else resolve(reply);
    };
    this.post(path, JSON.stringify(message), onReply, headers);
    const reply = await promise;
    const text = reply.body.toString();
    if (reply.status !== 200) throw new Error(`${path}: HTTP ${reply.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
