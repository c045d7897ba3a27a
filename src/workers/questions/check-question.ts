import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { CUT, TRUE } from '../../engine/bound/scope.ts';
import type { Decision, QuestionArgs } from '../../protocol/questions.ts';
import { countedUnknown } from './known-relation.ts';
import type { QuestionGround, QuestionSpec } from './question-spec.ts';

/** Check with contextual tuples, and whether a deny is undecided. */
export const checkQuestion: QuestionSpec<'check'> = {
  rpc: 'QueryCheck',
  isLong: () => false,
  refusedQuestion: ({ question, contextual, context }) =>
    contextual.length === 0 ? { kind: 'check', ...question, contextJson: context } : null,
  start: startCheckQuestion,
};

function startCheckQuestion(
  ground: QuestionGround,
  { question, context: contextJson }: QuestionArgs['check'],
): EvaluationTask<Decision> {
  const { evaluator, model, nowMs, readBudget, context } = ground;
  const { namespace, objectId, relation, subject } = question;
  const query = { namespace, objectId, relation, subject, contextJson };
  const counter = context.stats.counter(model, namespace, relation);
  const unknownRelation = countedUnknown(ground, counter, 'question.', namespace, relation);
  const task = evaluator.startDecision(query, nowMs, readBudget);
  return {
    run(sliceEndMs) {
      try {
        if (task.run(sliceEndMs) === 'more') return 'more';
      } catch (error) {
        counter.error += 1;
        throw error;
      }
      if (task.result() === TRUE) counter.allowed += 1;
      else counter.denied += 1;
      return 'done';
    },
    result: () => {
      const value = task.result();
      return { allowed: value === TRUE, undecided: value === CUT, unknownRelation };
    },
    get backstops() {
      return task.backstops;
    },
    get reads() {
      return task.reads;
    },
  };
}
