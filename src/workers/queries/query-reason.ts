/** Why a query is refused by its worker. */
export type QueryReason =
  | 'TUPLE_NOT_ADMITTED' // by the model that decides
  | 'RELATION_UNKNOWN'; // to that model, in a project that refuses such queries
