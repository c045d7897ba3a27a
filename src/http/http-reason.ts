/** Why a request cannot be read, and what went wrong below it. */
export type HttpReason = 'BODY_MALFORMED' | 'BODY_TOO_LARGE' | 'INTERNAL';
