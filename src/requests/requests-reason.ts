/** Why a decoded request is refused before anything is looked up for it. */
export type RequestsReason = 'FIELD_REQUIRED' | 'BATCH_TOO_LARGE';
