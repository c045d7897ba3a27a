/** One statement that a release sent, as statement-recorder.mjs wrote it. */
export type RecordedStatement = {
  /** When it began, monotonic nanoseconds: the order of all. */
  readonly at: string;
  /** Thread and number of the connection. */
  readonly connection: string;
  readonly text: string;
  readonly values: readonly unknown[];
  readonly rowMode?: 'array';
  /** What came back last: rows, and the name and type of each column. Absent for a snapshot. */
  readonly rows?: number | null;
  readonly fields?: readonly (readonly [name: string, type: number])[];
  readonly isSnapshot?: true;
};
