import type { RunnerEvent, RunnerEventType } from '../model/events.ts';

/** What of an event lies outside of its data, so that filters need not look inside. */
type BatchHead = {
  readonly type: RunnerEventType;
  readonly runId: string;
  /** Sequence of the first frame; those of a batch follow one another. */
  readonly firstSeq: number;
};

/** What JSON does not hold as it is (RFC 8259 §7), lone surrogates among it. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const NEEDS_ESCAPE = /["\\\u0000-\u001f\ud800-\udfff]/;
/** Bytes that a frame needs beside its line: id, event name, the other fields. */
const FRAME_OVERHEAD_BYTES = 160;
const LINES_PER_TEXT = 64;

/**
 * One event, or the lines of one step that came together, as frames of the stream (WHATWG HTML
 * §9.2.6). They are encoded once, when the first subscriber needs them, for all subscribers.
 * `id:` stands before `event:`, so that `event: x\ndata: ` stays in one piece.
 */
export class FrameBatch {
  readonly type: RunnerEventType;
  readonly runId: string;
  readonly firstSeq: number;
  readonly count: number;
  /** An estimate until the frames are encoded, for budgets. */
  readonly estimatedBytes: number;
  readonly #epoch: string;
  /** `{"runId":…,"line":` for lines, the whole data for other events. */
  readonly #data: string;
  #lines: readonly string[] | undefined;
  #bytes: Buffer | undefined;

  private constructor(
    head: BatchHead,
    epoch: string,
    data: string,
    lines: readonly string[] | undefined,
    estimatedBytes: number,
  ) {
    this.type = head.type;
    this.runId = head.runId;
    this.firstSeq = head.firstSeq;
    this.#epoch = epoch;
    this.#data = data;
    this.#lines = lines;
    this.count = lines?.length ?? 1;
    this.estimatedBytes = estimatedBytes;
  }

  static ofEvent(event: RunnerEvent, epoch: string, firstSeq: number): FrameBatch {
    const { type, runId } = event;
    const data = JSON.stringify({ ...event, type: undefined });
    const bytes = data.length + FRAME_OVERHEAD_BYTES;
    return new FrameBatch({ type, runId, firstSeq }, epoch, data, undefined, bytes);
  }

  static ofLines(
    place: { readonly runId: string; readonly jobId: string; readonly stepNumber: number },
    { lines, bytes }: LinesPiece,
    epoch: string,
    firstSeq: number,
  ): FrameBatch {
    const { runId, jobId, stepNumber } = place;
    const data = `${JSON.stringify({ runId, jobId, stepNumber }).slice(0, -1)},"line":`;
    return new FrameBatch({ type: 'step.log', runId, firstSeq }, epoch, data, lines, bytes);
  }

  get isLog(): boolean {
    return this.type === 'step.log';
  }

  /** All frames, one after the other. */
  bytes(): Buffer {
    if (this.#bytes === undefined) {
      const middle = `\nevent: ${this.type}\ndata: ${this.#data}`;
      const lines = this.#lines;
      this.#bytes =
        lines === undefined
          ? Buffer.from(`id: ${this.#epoch}-${this.firstSeq}${middle}\n\n`)
          : this.#encodeLines(lines, `${middle}"`);
      this.#lines = undefined;
    }
    return this.#bytes;
  }

  /** The frames from sequence `seq` on. Cost: O(bytes) when it lies within. */
  bytesFrom(seq: number): Buffer {
    const all = this.bytes();
    let offset = 0;
    for (let skipped = this.firstSeq; skipped < seq; skipped++) {
      // A blank line ends a frame, and nothing else: JSON holds no line break.
      offset = all.indexOf('\n\n', offset) + 2;
    }
    return all.subarray(offset);
  }

  /** Hot. In short texts: a long one of many pieces outlives the young heap and costs twice as much. */
  #encodeLines(lines: readonly string[], middle: string): Buffer {
    const next = `"}\n\nid: ${this.#epoch}-`;
    const buffers: Buffer[] = [];
    let seq = this.firstSeq;
    let start = `id: ${this.#epoch}-`;
    let text = '';
    for (const line of lines) {
      text += `${start}${seq++}${middle}${NEEDS_ESCAPE.test(line) ? escaped(line) : line}`;
      start = next;
      if (seq % LINES_PER_TEXT !== 0) continue;
      buffers.push(Buffer.from(text));
      text = '';
    }
    buffers.push(Buffer.from(`${text}"}\n\n`));
    return Buffer.concat(buffers);
  }
}

function escaped(line: string): string {
  return JSON.stringify(line).slice(1, -1);
}

/** A frame that the stream itself makes: without id, as it is no event of a run. */
export function plainFrame(event: 'ping' | 'gap' | 'reset', data: object): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Lines that go into one batch, and about how many bytes their frames take. */
export type LinesPiece = { readonly lines: readonly string[]; readonly bytes: number };

/** Cuts `lines` into pieces of about `bytesMax`, at least one line each. */
export function* piecesOf(lines: readonly string[], bytesMax: number): Generator<LinesPiece> {
  let start = 0;
  let bytes = 0;
  for (let i = 0; i < lines.length; i++) {
    bytes += (lines[i]?.length ?? 0) + FRAME_OVERHEAD_BYTES;
    if (bytes < bytesMax && i + 1 < lines.length) continue;
    const isAll = start === 0 && i + 1 === lines.length;
    yield { lines: isAll ? lines : lines.slice(start, i + 1), bytes };
    start = i + 1;
    bytes = 0;
  }
}
