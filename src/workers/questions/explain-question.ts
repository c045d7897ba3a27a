import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { ExplainRun } from '../../engine/questions/explain-run.ts';
import type { QuestionArgs, QuestionResults } from '../../protocol/questions.ts';
import { isUnknown } from './known-relation.ts';
import type { QuestionGround, QuestionSpec } from './question-spec.ts';

/** Why Check answers as it does. */
export const explainQuestion: QuestionSpec<'explain'> = {
  rpc: 'Explain',
  // Of a deny everything is read that could have granted, and each remedy is evaluated.
  isLong: () => true,
  start: startExplainQuestion,
};

function startExplainQuestion(
  ground: QuestionGround,
  { question, contextual, context: contextJson, remediesMax }: QuestionArgs['explain'],
): EvaluationTask<QuestionResults['explain']> {
  const { namespace, objectId, relation, subject } = question;
  const unknownRelation = isUnknown(ground, 'question.', namespace, relation);
  const query = { namespace, objectId, relation, subject, contextJson };
  const { evaluator, model, nowMs, readBudget, context } = ground;
  const held = contextual.map((tuple) => ({ op: 'insert' as const, tuple }));
  const explained = {
    evaluator,
    // The request's tuples stand above what is stored, so a remedy counts only where they leave it to.
    withTuple: (tuple: (typeof contextual)[number]) =>
      ground.over([{ op: 'insert', tuple }, ...held]),
    model,
    contextual,
    nowMs,
    readBudget,
  };
  const run = new ExplainRun(explained, query, remediesMax, context.clock);
  return {
    run: (sliceEndMs) => run.run(sliceEndMs),
    result: () => ({ ...run.result(), unknownRelation }),
    get backstops() {
      return run.backstops;
    },
    get reads() {
      return run.reads;
    },
  };
}
