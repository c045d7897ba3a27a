import type { QuestionKind } from '../../protocol/questions.ts';
import { batchCheckQuestion } from './batch-check-question.ts';
import { checkQuestion } from './check-question.ts';
import { drawQuestions } from './draw-questions.ts';
import { explainQuestion } from './explain-question.ts';
import { filterObjectsQuestion } from './filter-objects-question.ts';
import { listObjectsQuestion, streamObjectsQuestion } from './list-objects-questions.ts';
import { listRelationsQuestion } from './list-relations-question.ts';
import { listSubjectsQuestion } from './list-subjects-question.ts';
import { measureReadsQuestion } from './measure-reads-question.ts';
import { previewModel } from './preview-model.ts';
import type { QuestionSpec } from './question-spec.ts';
import { whatIfQuestion } from './what-if-question.ts';

/** Every kind with its evaluation: one that is missing does not compile. */
export const QUESTIONS: { readonly [K in QuestionKind]: QuestionSpec<K> } = {
  check: checkQuestion,
  listSubjects: listSubjectsQuestion,
  listRelations: listRelationsQuestion,
  filterObjects: filterObjectsQuestion,
  listObjects: listObjectsQuestion,
  streamObjects: streamObjectsQuestion,
  batchCheck: batchCheckQuestion,
  whatIf: whatIfQuestion,
  drawQuestions,
  previewModel,
  explain: explainQuestion,
  measureReads: measureReadsQuestion,
};
