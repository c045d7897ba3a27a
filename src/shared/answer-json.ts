/**
 * JSON options for messages in answers and in the details of errors: every field, under its proto
 * name.
 */
export const ANSWER_JSON = { useProtoFieldName: true, alwaysEmitImplicit: true } as const;
