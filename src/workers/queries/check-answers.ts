import { create } from '@bufbuild/protobuf';
import type { Decision } from '../../protocol/queries.ts';
import type { WireFormat } from '../../protocol/shard-client.ts';
import { type EncodedAnswer, encodeAnswer } from '../../requests/encode-answer.ts';
import { QUERY_METHODS } from '../../requests/query-methods.ts';

const DESC = QUERY_METHODS.queryCheck.answer;
/** By format and what they say: sixteen at most. */
const encoded = new Map<string, EncodedAnswer>();

/** The answer to a Check of gatehouse.v1, encoded once for each that there is. Its bytes are for reading. */
export function checkAnswer(decision: Decision, format: WireFormat): EncodedAnswer {
  const { allowed, undecided, unknownRelation } = decision;
  const key = `${format} ${allowed} ${undecided} ${unknownRelation}`;
  let answer = encoded.get(key);
  if (answer === undefined) {
    const message = create(DESC, { allowed, undecided, unknownRelation });
    const step = encodeAnswer(DESC, message, format).next();
    if (step.done !== true) throw new Error('a short answer is encoded in one step');
    answer = step.value;
    encoded.set(key, answer);
  }
  return answer;
}
