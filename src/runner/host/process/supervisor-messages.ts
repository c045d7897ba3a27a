/**
 * What the runner and its supervisors say to each other: JSON, one message a line. `id` is given by the
 * asker and comes back.
 */
export type SupervisorRequest =
  /** Answered by `started` or `refused`, and by `ended` at its time. */
  | {
      readonly type: 'start';
      readonly id: number;
      readonly file: string;
      readonly args: readonly string[];
      readonly cwd: string;
      readonly env: Readonly<Record<string, string>>;
      /** Paths of named pipes; stdout and stderr go to one. Without input it is /dev/null. */
      readonly output: string;
      readonly input?: string | undefined;
    }
  /** Ends all that is below; with `sparesStarted`, only what was not started by a message. */
  | { readonly type: 'clear'; readonly id: number; readonly sparesStarted: boolean };

export type SupervisorReply =
  | { readonly type: 'ready' }
  | { readonly type: 'started'; readonly id: number; readonly pid: number }
  /** `error`: the system's name of it. */
  | { readonly type: 'refused'; readonly id: number; readonly error: string }
  | {
      readonly type: 'ended';
      readonly id: number;
      /** Null when a signal ended it. */
      readonly code: number | null;
      readonly signal: string | null;
    }
  /** How many were killed, and how many could not be. */
  | {
      readonly type: 'cleared';
      readonly id: number;
      readonly killed: number;
      readonly left: number;
    };

/** Fields of the messages that carry them, and of no others. */
export type StartMessage = Extract<SupervisorRequest, { type: 'start' }>;
