import { createHash } from 'node:crypto';
import { type RelationTuple, subjectToColumns } from '../../model/relation-tuple.ts';
import type { ImportPart } from '../../store/sql/tuple-imports.ts';

/** A part ends with the row that reaches either; so the same stream is cut in the same places. */
const PART_ROWS = 8_192;
const PART_CHARACTERS = 1_048_576;

/** Rows of an import, ready to be staged. */
export type CutPart = ImportPart & {
  /** As staging takes them, numbered from `firstRow`. */
  linesOf(importNo: string, firstRow: number): Buffer;
};

/** Cuts a stream of tuples into parts. */
export class PartCutter {
  #lines: string[] = [];
  #characters = 0;

  /** Adds a tuple; returns the part that it completes. */
  add(tuple: RelationTuple): CutPart | undefined {
    const line = copyLine(tuple);
    this.#lines.push(line);
    this.#characters += line.length;
    const isFull = this.#lines.length === PART_ROWS || this.#characters >= PART_CHARACTERS;
    return isFull ? this.rest() : undefined;
  }

  /** What is left; undefined: nothing. */
  rest(): CutPart | undefined {
    const lines = this.#lines;
    if (lines.length === 0) return undefined;
    this.#lines = [];
    this.#characters = 0;
    return {
      rowCount: lines.length,
      digest: createHash('sha256').update(lines.join('')).digest(),
      linesOf: (importNo, firstRow) => {
        let text = '';
        for (let i = 0; i < lines.length; i++) text += `${importNo}\t${firstRow + i}\t${lines[i]}`;
        return Buffer.from(text);
      },
    };
  }
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
  }\n`;
}

function escaped(text: string): string {
  if (!ESCAPED.test(text)) return text;
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('\t', '\\t')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r');
}
