/** A program as it is started: everything of it but its output. */
export type ProgramStart = {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
};

/** One job that is kept apart from the runner, its user and the project. All it has is below `dir`. */
export interface JobIsolation {
  /** The user that files of the job belong to. The runner reads no others on its behalf. */
  readonly uid: number;
  readonly dir: string;
  /** The tree of the run, the job's own. */
  readonly workspace: string;
  /** RUNNER_TEMP. */
  readonly temp: string;
  /** For GITHUB_ENV and its like: the job may write to files in it. */
  readonly commands: string;
  /** What the runner puts there the job can read, and not change. */
  readonly shared: string;
  /** HOME. */
  readonly home: string;
  /** How a program is started so that it is the job's. */
  wrap(program: ProgramStart): ProgramStart;
  /** Gives a file or folder, with all below it, to the job. */
  give(path: string): Promise<void>;
  /** Ends what is left of its processes, and removes `dir`. Never rejects. */
  end(): Promise<void>;
}

/** How jobs of forks are kept apart on this machine. */
export interface ForkIsolation {
  /** Whether a job is kept apart now, or processes of one may be left. */
  readonly isInUse: boolean;
  /** Why jobs cannot be kept apart here; undefined when they can. Tried once, by doing it. */
  whyNot(): Promise<string | undefined>;
  /**
   * Begins a job with a tree of its own, made from the commit that the work tree `source` is at.
   * Errors: FORKS_REFUSED.
   */
  begin(source: string): Promise<JobIsolation>;
}
