import type { ClientBase, Connection, Submittable } from 'pg';

/** Methods of the driver's connection that its types lack. */
type CopyConnection = Connection & {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
};

/**
 * Runs `text`, statements of which the last one is a COPY FROM STDIN, with `data` as what is copied: one round trip, and
 * outside of a transaction all or nothing. Errors: the driver's; of one that is `isUnavailable` the outcome is unknown.
 */
export function copyIn(client: ClientBase, text: string, data: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query(new CopyInQuery(text, data, resolve, reject));
  });
}

class CopyInQuery implements Submittable {
  readonly #text: string;
  readonly #data: Buffer;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;

  constructor(text: string, data: Buffer, resolve: () => void, reject: (error: unknown) => void) {
    this.#text = text;
    this.#data = data;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: Connection): void {
    connection.query(this.#text);
  }

  handleRowDescription(): void {
    // Sent for functions that return nothing.
  }

  handleDataRow(): void {
    // Likewise.
  }

  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(this.#data);
    connection.endCopyFrom();
  }

  handleCommandComplete(): void {
    // The end of all of them is what counts.
  }

  handleReadyForQuery(): void {
    this.#resolve();
  }

  handleError(error: Error): void {
    this.#reject(error);
  }
}
