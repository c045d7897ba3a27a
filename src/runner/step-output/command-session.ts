import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { isBlockedName } from '../host/process/step-environment.ts';
import type { Annotation, AnnotationLevel } from '../model/run.ts';
import { placeOfCommand, placeOfMatch, type RepositoryPlace } from './annotation-places.ts';
import { type Command, isCommandName, mayHoldCommand, parseCommand } from './command.ts';
import type { Masker } from './masker.ts';
import type { MatcherRun, MatcherSet } from './matcher-set.ts';
import { parseProblemMatchers, type ProblemMatch } from './problem-matchers.ts';
import { LOG_LINE_BYTES_MAX, UnfinishedLine, utf8Exceeds } from './unfinished-line.ts';

/** Of each level in each step; docs.github.com, limits of annotations. */
const ANNOTATIONS_MAX = 10;
const MESSAGE_LENGTH_MAX = 4_096;
const MATCHER_FILE_BYTES_MAX = 1024 * 1024;
/** Shorter tokens of stop-commands would hide too much. */
const MASKED_TOKEN_LENGTH_MIN = 7;
const COLOR_CODE = new RegExp(String.raw`\u001B\[[0-9;]*m?`, 'gu');

export type CommandSessionOptions = {
  readonly masker: Masker;
  /** Shared by the steps of a job. */
  readonly matchers: MatcherSet;
  readonly repository: RepositoryPlace;
  /** Shows `debug` commands and echoes all others from the start (ACTIONS_STEP_DEBUG). */
  readonly isDebug: boolean;
  /** ACTIONS_ALLOW_UNSECURE_COMMANDS of the step's environment is `true`. */
  readonly allowsUnsecureCommands: boolean;
  /** ACTIONS_ALLOW_UNSECURE_STOPCOMMAND_TOKENS of the step's environment is `true`. */
  readonly allowsUnsecureTokens: boolean;
  /** Reads the file of a problem matcher. Default: any file of the machine. Errors: INVALID_VALUE. */
  readonly readFile?: ((path: string) => string) | undefined;
  /** Put into each annotation. */
  readonly jobId?: string | undefined;
  readonly stepNumber?: number | undefined;
};

/** What to do with lines that a step printed. Everything is masked. */
export type SessionOutput = {
  /** For the log, without line ends. */
  readonly lines: string[];
  readonly annotations: Annotation[];
};

/** The workflow commands of one step: its state, and what it set so far. */
export interface CommandSession {
  /**
   * @param lines raw, in order; `block` is a text that holds them all (see LineSplitter).
   * Cost of lines without commands, secrets and matchers: three searches of the block.
   */
  handle(lines: readonly string[], block?: string): SessionOutput;
  /** What the runner itself has to say, as the commands say it: masked, counted, logged. */
  annotate(level: AnnotationLevel, message: string): SessionOutput;
  readonly outputs: ReadonlyMap<string, string>;
  readonly state: ReadonlyMap<string, string>;
  readonly env: ReadonlyMap<string, string>;
  /** In the order in which they were added; the last one comes first in PATH. */
  readonly path: readonly string[];
  /** A command went wrong: the step fails, whatever its exit code. */
  readonly hasFailed: boolean;
}

export function createCommandSession(options: CommandSessionOptions): CommandSession {
  return new SessionState(options);
}

class SessionState implements CommandSession {
  readonly outputs = new Map<string, string>();
  readonly state = new Map<string, string>();
  readonly env = new Map<string, string>();
  hasFailed = false;
  readonly #options: CommandSessionOptions;
  readonly #counts: Record<AnnotationLevel, number> = { notice: 0, warning: 0, error: 0 };
  readonly #deprecated = new Set<string>();
  readonly #path = new Set<string>();
  readonly #matcherRun: MatcherRun;
  #isEchoing: boolean;
  #resumeToken: string | undefined;

  constructor(options: CommandSessionOptions) {
    this.#options = options;
    this.#matcherRun = options.matchers.follow();
    this.#isEchoing = options.isDebug;
  }

  get path(): readonly string[] {
    return [...this.#path];
  }

  handle(lines: readonly string[], block: string = lines.join('\n')): SessionOutput {
    const { masker, matchers } = this.#options;
    const mayCommand = mayHoldCommand(block);
    if (!mayCommand && matchers.isEmpty()) {
      const isClean = !masker.contains(block);
      return {
        lines: isClean ? [...lines] : lines.map((line) => masker.mask(line)),
        annotations: [],
      };
    }
    const output: SessionOutput = { lines: [], annotations: [] };
    let plain: string[] = [];
    for (const line of lines) {
      const command = mayCommand ? parseCommand(line, this.#resumeToken) : undefined;
      if (command === undefined || !this.#isListening(command)) {
        plain.push(line);
        continue;
      }
      // In order: a command changes what follows only.
      this.#logPlain(plain, output);
      plain = [];
      this.#run(command, line, output);
    }
    this.#logPlain(plain, output);
    return output;
  }

  annotate(level: AnnotationLevel, message: string): SessionOutput {
    const output: SessionOutput = { lines: [], annotations: [] };
    this.#report(level, message, {}, output);
    return output;
  }

  #isListening(command: Command): boolean {
    const token = this.#resumeToken;
    // An empty token, where it is allowed at all, stops commands for good.
    return token === undefined || (token !== '' && command.name === token.toLowerCase());
  }

  /** A command may be longer than a line of the log; what is masked can be cut anywhere. */
  #log(line: string, output: SessionOutput): void {
    const masked = this.#options.masker.mask(line);
    if (utf8Exceeds(masked, LOG_LINE_BYTES_MAX)) {
      const long = new UnfinishedLine(LOG_LINE_BYTES_MAX, undefined, { cutsCommands: true });
      long.append(masked, output.lines);
      long.finish(output.lines);
    } else {
      output.lines.push(masked);
    }
  }

  #logAll(lines: readonly string[], output: SessionOutput): void {
    for (const line of lines) {
      this.#log(line, output);
    }
  }

  /** `text` with the level's prefix; further lines of it follow bare. */
  #logMarked(mark: string, text: string, output: SessionOutput): void {
    const masked = this.#options.masker.mask(text);
    for (const [index, line] of masked.split(/\r?\n/u).entries()) {
      this.#log(index === 0 ? `##[${mark}]${line}` : line, output);
    }
  }

  #logPlain(lines: readonly string[], output: SessionOutput): void {
    const { matchers } = this.#options;
    if (lines.length === 0) {
      return;
    }
    if (matchers.isEmpty()) {
      this.#logAll(lines, output);
      return;
    }
    const bare = lines.map((line) =>
      line.includes('\u001B[') ? line.replaceAll(COLOR_CODE, '') : line,
    );
    const { found, removed } = this.#matcherRun.match(bare);
    let logged = 0;
    for (const { index, level, match } of found) {
      this.#logAll(lines.slice(logged, index), output);
      logged = index + 1;
      this.#reportMatch(level, match, bare[index] ?? '', output);
    }
    this.#logAll(lines.slice(logged), output);
    for (const owner of removed) {
      this.#report(
        'warning',
        `Problem matcher '${owner}' was removed: it takes too long`,
        {},
        output,
      );
    }
  }

  #reportMatch(
    level: AnnotationLevel,
    match: ProblemMatch,
    line: string,
    output: SessionOutput,
  ): void {
    this.#logMarked(level, line, output);
    if (this.#mayAnnotate(level, output)) {
      const code = (match.code ?? '').trim();
      const place = placeOfMatch(match, this.#options.repository);
      this.#push(
        level,
        match.message ?? '',
        { ...place, title: code === '' ? undefined : code },
        output,
      );
    }
  }

  #report(
    level: AnnotationLevel,
    message: string,
    details: Partial<Annotation>,
    output: SessionOutput,
  ): void {
    this.#logMarked(level, message, output);
    if (this.#mayAnnotate(level, output)) {
      this.#push(level, message, details, output);
    }
  }

  #mayAnnotate(level: AnnotationLevel, output: SessionOutput): boolean {
    this.#counts[level] += 1;
    if (this.#counts[level] === ANNOTATIONS_MAX + 1) {
      output.lines.push(
        `##[${level}]More than ${ANNOTATIONS_MAX} annotations of this level: the rest is in the log only`,
      );
    }
    return this.#counts[level] <= ANNOTATIONS_MAX;
  }

  #push(
    level: AnnotationLevel,
    message: string,
    details: Partial<Annotation>,
    output: SessionOutput,
  ): void {
    const { masker, jobId, stepNumber } = this.#options;
    const { file, title } = details;
    output.annotations.push({
      ...details,
      level,
      // Masked first: a cut secret would not be found any more.
      message: shortened(masker.mask(message)),
      title: title === undefined ? undefined : shortened(masker.mask(title)),
      file: file === undefined ? undefined : shortened(masker.mask(file)),
      jobId,
      stepNumber,
    });
  }

  #run(command: Command, line: string, output: SessionOutput): void {
    if (this.#resumeToken !== undefined) {
      this.#log(line, output);
      this.#resumeToken = undefined;
      return;
    }
    if (this.#isEchoing && !isNeverEchoed(command.name)) {
      this.#log(line, output);
    }
    try {
      this.#execute(command, line, output);
    } catch (error) {
      if (!(error instanceof AppError)) {
        throw error;
      }
      this.hasFailed = true;
      this.#report('error', `Command '${command.name}' failed: ${error.message}`, {}, output);
    }
  }

  #execute(command: Command, line: string, output: SessionOutput): void {
    const { value } = command;
    switch (command.name) {
      case 'error':
      case 'warning':
      case 'notice':
        this.#report(
          command.name,
          value,
          {
            ...placeOfCommand(command, this.#options.repository.workspaceDir),
            title: command.properties.get('title'),
          },
          output,
        );
        return;
      case 'debug':
        if (this.#options.isDebug) {
          this.#logMarked('debug', value, output);
        }
        return;
      case 'group':
      case 'endgroup':
        this.#log(`##[${command.name}]${command.name === 'group' ? value : ''}`, output);
        return;
      case 'add-mask':
        this.#addMask(value, output);
        return;
      case 'echo':
        this.#isEchoing = readSwitch(value);
        return;
      case 'stop-commands':
        this.#stop(value, line, output);
        return;
      case 'add-matcher':
      case 'remove-matcher':
        this.#changeMatchers(command, output);
        return;
      default:
        this.#set(command, output);
    }
  }

  #set(command: Command, output: SessionOutput): void {
    const { name, value } = command;
    if (name === 'add-path') {
      this.#demandUnsecure(name);
      if (value === '') {
        throw new AppError('INVALID_VALUE', 'no path is given');
      }
      this.#path.delete(value);
      this.#path.add(value);
      return;
    }
    if (name === 'set-env') {
      this.#demandUnsecure(name);
      const key = nameOf(command);
      if (isBlockedName(key)) {
        this.#report('error', `${key} cannot be set by the command 'set-env'`, {}, output);
      } else {
        this.env.set(key, value);
      }
      return;
    }
    if (!this.#deprecated.has(name)) {
      this.#deprecated.add(name);
      const file = name === 'set-output' ? 'GITHUB_OUTPUT' : 'GITHUB_STATE';
      this.#report('warning', `The command '${name}' is deprecated: write to $${file}`, {}, output);
    }
    const target = name === 'set-output' ? this.outputs : this.state;
    target.set(nameOf(command), value);
  }

  #demandUnsecure(name: string): void {
    if (!this.#options.allowsUnsecureCommands) {
      const file = name === 'set-env' ? 'GITHUB_ENV' : 'GITHUB_PATH';
      throw new AppError(
        'INVALID_VALUE',
        `it is disabled; write to $${file}, or set ACTIONS_ALLOW_UNSECURE_COMMANDS to true`,
      );
    }
  }

  #addMask(value: string, output: SessionOutput): void {
    if (value.trim() === '') {
      this.#report('warning', `Command 'add-mask' without a value hides nothing`, {}, output);
      return;
    }
    if (this.#isEchoing) {
      output.lines.push('::add-mask::***');
    }
    this.#options.masker.add(value);
  }

  #stop(token: string, line: string, output: SessionOutput): void {
    const isUnsafe =
      token === '' || isCommandName(token) || token.toLowerCase() === 'pause-logging';
    if (isUnsafe && !this.#options.allowsUnsecureTokens) {
      throw new AppError(
        'INVALID_VALUE',
        'the token is empty, a command or pause-logging; choose a random one, or set ' +
          'ACTIONS_ALLOW_UNSECURE_STOPCOMMAND_TOKENS to true',
      );
    }
    this.#resumeToken = token;
    if (token.length >= MASKED_TOKEN_LENGTH_MIN) {
      this.#options.masker.add(token);
    }
    this.#log(line, output);
  }

  #changeMatchers(command: Command, output: SessionOutput): void {
    const { matchers, repository } = this.#options;
    const owner = command.properties.get('owner') ?? '';
    const file = command.value;
    if (command.name === 'add-matcher') {
      if (file === '') {
        this.#report('warning', `Command 'add-matcher' needs the path of a file`, {}, output);
      } else {
        matchers.add(this.#readMatchers(resolve(repository.workspaceDir, file)));
      }
      return;
    }
    if ((owner === '') === (file === '')) {
      this.#report('warning', `Command 'remove-matcher' needs an owner or a file`, {}, output);
    } else if (owner === '') {
      const definitions = this.#readMatchers(resolve(repository.workspaceDir, file));
      matchers.remove(definitions.map((definition) => definition.owner));
    } else {
      matchers.remove([owner]);
    }
  }

  #readMatchers(path: string): ReturnType<typeof parseProblemMatchers> {
    const { readFile } = this.#options;
    return readFile === undefined ? readMatcherFile(path) : parseProblemMatchers(readFile(path));
  }
}

/** Their effect shows in the log anyway, or must not show. */
function isNeverEchoed(name: string): boolean {
  return ['add-mask', 'debug', 'error', 'warning', 'notice', 'stop-commands'].includes(name);
}

function nameOf(command: Command): string {
  const name = command.properties.get('name') ?? '';
  if (name === '') {
    throw new AppError('INVALID_VALUE', `the property 'name' is missing`);
  }
  return name;
}

function readSwitch(value: string): boolean {
  const text = value.trim().toLowerCase();
  if (text !== 'on' && text !== 'off') {
    throw new AppError('INVALID_VALUE', `the value is neither 'on' nor 'off'`);
  }
  return text === 'on';
}

function readMatcherFile(path: string): ReturnType<typeof parseProblemMatchers> {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() !== true || stats.size > MATCHER_FILE_BYTES_MAX) {
    throw new AppError('INVALID_VALUE', 'there is no such file of at most 1 MiB');
  }
  return parseProblemMatchers(readFileSync(path, 'utf8'));
}

function shortened(text: string): string {
  return text.length <= MESSAGE_LENGTH_MAX
    ? text
    : `${text.slice(0, MESSAGE_LENGTH_MAX - 1).replace(/[\uD800-\uDBFF]$/u, '')}…`;
}
