/** An answer, whatever carries it. */
export type HttpAnswer = {
  readonly status: number;
  readonly header?: Headers | undefined;
  /** Whole, or part by part; absent: no body. */
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Read once the body has ended. */
  readonly trailer?: Headers | undefined;
};

/** All of an answer but its body. */
export type AnswerHead = Omit<HttpAnswer, 'body'>;

/** Takes the bytes of one answer. Does nothing once the client has gone. */
export interface AnswerSink {
  /** The answer is complete, or the client has gone. */
  readonly isOver: boolean;
  /** Sends an answer at once. */
  send(head: AnswerHead, body: Uint8Array | undefined): void;
  /** Begins an answer whose parts come one by one. Errors: throws where the head cannot be sent. */
  begin(head: AnswerHead): void;
  /** Writes a part; resolves when more may be written, or the answer is over. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the answer, with the trailer as it is by then. */
  finish(): void;
  /** Gives up an answer that has begun. */
  abort(): void;
}

/**
 * Writes an answer. A body that is known whole is sent at once. Otherwise each part is sent as it comes, and a slow client
 * holds back the source of the parts. Never throws: a failure on the way aborts the answer.
 */
export async function respond(sink: AnswerSink, { body, ...head }: HttpAnswer): Promise<void> {
  try {
    // Within this turn: from now on the rest of a refused request body is thrown away.
    if (body === undefined || body instanceof Uint8Array) return sink.send(head, body);
    let hasBegun = false;
    for await (const part of body) {
      // Handlers may set headers until their first message.
      if (!hasBegun) sink.begin(head);
      hasBegun = true;
      if (!sink.isOver) await sink.write(part);
      if (sink.isOver) return;
    }
    if (!hasBegun) sink.begin(head);
    sink.finish();
  } catch {
    sink.abort();
  }
}
