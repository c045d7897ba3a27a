const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** True for what may be the id of a run, and with that the name of its folders. */
export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}
