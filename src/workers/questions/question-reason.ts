/** Why a question is refused by its worker. */
export type QuestionReason =
  | 'TUPLE_NOT_ADMITTED' // by the model that decides
  | 'RELATION_UNKNOWN'; // to that model, in a project that refuses such questions
