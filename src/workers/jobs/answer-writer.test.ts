import { expect, test } from 'vitest';
import { packAnswers, unpackAnswers } from '../../protocol/packed-batch.ts';
import { jsonOfBatch, protoOfBatch } from '../raw/answer-encoder.ts';
import { AnswerWriter, ownAnswers } from './answer-writer.ts';

const NO_ERRORS = new Map<number, string>();

/** Bodies of a batch that was sent as the port sends it. */
function sent(writer: AnswerWriter): string[] {
  const packed = packAnswers(1, writer.drain());
  if (packed === null) throw new Error('not packed');
  const { bodies, bodyEnds } = unpackAnswers(packed).content;
  return [...bodyEnds].map((end, i) =>
    Buffer.from(bodies.subarray(bodyEnds[i - 1] ?? 0, end)).toString('latin1'),
  );
}

test('bodies written in place are those of a buffer of their own, over what lay there before', () => {
  const writer = new AnswerWriter();
  const rooms = (id: number) => (length: number) => writer.space(id, length);
  for (let turn = 0; turn < 3; turn++) {
    // Ones, where denied items of the binary form are zeros.
    writer.space(1, 60_000).fill(0xff);
    sent(writer);
    const wanted: string[] = [];
    for (let id = 0; id < 40; id++) {
      const outcomes = Uint8Array.from({ length: 1 + id * 3 }, (_, i) => (i * 7 + id + turn) % 2);
      const encode = id % 2 === 0 ? jsonOfBatch : protoOfBatch;
      encode(outcomes, NO_ERRORS, rooms(id));
      wanted.push(Buffer.from(encode(outcomes, NO_ERRORS)).toString('latin1'));
    }
    expect(sent(writer)).toEqual(wanted);
  }
  expect(writer.isEmpty).toBe(true);
});

test('a large body has a buffer of its own; what else was taken is overwritten, its copy is not', () => {
  const writer = new AnswerWriter();
  writer.kind(1, 7);
  writer.space(2, 3).set([1, 2, 3]);
  const large = writer.space(3, 70_000);
  large.fill(9);
  const taken = writer.drain();
  const own = ownAnswers(taken);
  expect(packAnswers(1, taken)).toBeNull();
  writer.kind(4, 8);
  writer.space(5, 3).set([4, 5, 6]);
  expect([...taken.bodies]).toEqual([4, 5, 6]);
  expect([...own.ids]).toEqual([1, 2, 3]);
  expect([...own.bodies]).toEqual([1, 2, 3]);
  expect(own.bodies.buffer.byteLength).toBe(3);
  expect(own.largeBodies).toEqual([large]);
  expect(own.largeBodies[0]?.buffer.byteLength).toBe(70_000);
});
