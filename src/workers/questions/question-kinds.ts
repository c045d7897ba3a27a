import type { QuestionKind } from '../../protocol/questions.ts';
import { batchCheckQuestion } from './batch-check-question.ts';
import { checkQuestion } from './check-question.ts';
import { explainQuestion } from './explain-question.ts';
import type { QuestionSpec } from './question-spec.ts';
import { whatIfQuestion } from './what-if-question.ts';

/** Every kind with its evaluation: one that is missing does not compile. */
export const QUESTIONS: { readonly [K in QuestionKind]: QuestionSpec<K> } = {
  check: checkQuestion,
  batchCheck: batchCheckQuestion,
  whatIf: whatIfQuestion,
  explain: explainQuestion,
};
