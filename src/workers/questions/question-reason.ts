/** Why a question is refused by its worker. */
export type QuestionReason = 'TUPLE_NOT_ADMITTED'; // by the model that decides
