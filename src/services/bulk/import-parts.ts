import { createHash } from 'node:crypto';
import { type RelationTuple, subjectToColumns } from '../../model/relation-tuple.ts';
import type { ImportPart } from '../../store/sql/writes/tuple-imports.ts';

/** A part ends with the row that reaches either, so that the same stream is always cut at the same rows. */
const PART_ROWS = 8_192;
const PART_CHARACTERS = 1_048_576;

/** Rows of an import, ready to be staged. */
export type CutPart = ImportPart & {
  /** The lines in the format that staging takes, numbered from `firstRow`. */
  linesOf(importNo: string, firstRow: number): Buffer;
};

/** Cuts a stream of tuples into parts. */
export class PartCutter {
  #lines: string[] = [];
  /** When each of the lines was written, as COPY has it. */
  #times: string[] = [];
  #characters = 0;

  /** Adds a tuple, and when it was written, in microseconds since the epoch; returns the part that it completes. */
  add(tuple: RelationTuple, writtenAtUs?: bigint): CutPart | undefined {
    const line = copyLine(tuple);
    this.#lines.push(line);
    this.#times.push(writtenAtUs === undefined ? NULL : timeText(writtenAtUs));
    this.#characters += line.length + 1;
    const isFull = this.#lines.length === PART_ROWS || this.#characters >= PART_CHARACTERS;
    return isFull ? this.rest() : undefined;
  }

  /** The last part, or undefined where no row is left. */
  rest(): CutPart | undefined {
    const lines = this.#lines;
    const times = this.#times;
    if (lines.length === 0) return undefined;
    this.#lines = [];
    this.#times = [];
    this.#characters = 0;
    const digest = createHash('sha256').update(`${lines.join('\n')}\n`);
    // Without times it is that of releases that know none.
    if (times.some((time) => time !== NULL)) digest.update(times.join('\n'));
    return {
      rowCount: lines.length,
      digest: digest.digest(),
      linesOf: (importNo, firstRow) => {
        let text = '';
        for (let i = 0; i < lines.length; i++) {
          text += `${importNo}\t${firstRow + i}\t${lines[i]}\t${times[i]}\n`;
        }
        return Buffer.from(text);
      },
    };
  }
}

const NULL = '\\N';

/** A time as PostgreSQL reads it, to the microsecond. */
function timeText(microseconds: bigint): string {
  const rest = ((microseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = Number((microseconds - rest) / 1_000_000n);
  const day = new Date(seconds * 1_000).toISOString().slice(0, -'.000Z'.length);
  return `${day}.${String(rest).padStart(6, '0')}Z`;
}

const ESCAPED = /[\\\t\n\r]/;

/** Columns of a row in the text format of COPY (PostgreSQL documentation, COPY, "Text Format"). */
function copyLine(tuple: RelationTuple): string {
  const [namespace, id, relation] = subjectToColumns(tuple.subject);
  const { expiresAtUs, conditionName, conditionParams } = tuple;
  return `${tuple.namespace}\t${escaped(tuple.objectId)}\t${tuple.relation}\t${namespace}\t${escaped(id)}\t${relation}\t${
    expiresAtUs ?? '\\N'
  }\t${conditionName === undefined ? '\\N' : escaped(conditionName)}\t${
    conditionParams === undefined ? '\\N' : escaped(conditionParams)
  }`;
}

function escaped(text: string): string {
  if (!ESCAPED.test(text)) return text;
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('\t', '\\t')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r');
}
