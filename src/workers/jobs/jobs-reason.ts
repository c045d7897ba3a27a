/** Why a worker refuses a request that it has not evaluated. */
export type JobsReason = 'BODY_MEMORY_EXHAUSTED';
