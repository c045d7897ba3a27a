/** Log of the store: one event name a line, plain fields. Wired to the logger by main. */
export type StoreLog = (
  level: 'info' | 'warn' | 'error',
  event: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** Notifies nobody. */
export const silentLog: StoreLog = () => undefined;
