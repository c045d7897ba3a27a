import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { isCount, objectOf, textOf } from './cache-entry.ts';
import type { DeploymentMirror, DeploymentRecord } from './deployment-record.ts';
import type { HostAnswer } from './host-answer.ts';
import type { HostClient } from './host-client.ts';
import { fetchPages } from './page-memory.ts';
import type { SyncConfig } from './sync-config.ts';

const RETRY_MS_MIN = 2000;
const RETRY_MS_MAX = 15 * 60_000;
/** After so many failures in a row the comment waits for the next change of its deployment, or a restart. */
const TRIES_MAX = 12;
/** Deployments that wait for their comment; beyond, the oldest keeps its error and is reported. */
const QUEUE_MAX = 1000;
const ERROR_CHARS_MAX = 300;

/** Shows deployments as comments on an issue, in the background, one after the other. */
export interface IssueMirror {
  /** Returns at once. `done` gets the outcome of every try. A later state of the same deployment replaces a waiting one. */
  show(record: DeploymentRecord, done: (mirror: DeploymentMirror) => void): void;
  pending(): number;
  /** Ends the try in flight and forgets the rest; the ledger knows what is owed. */
  close(): Promise<void>;
}

export type IssueMirrorOptions = {
  readonly client: HostClient;
  readonly config: () => SyncConfig;
  readonly clock: Clock;
  readonly random: () => number;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly report: ProblemReporter;
};

export function createIssueMirror(options: IssueMirrorOptions): IssueMirror {
  return new BackgroundMirror(options);
}

type Task = {
  readonly record: DeploymentRecord;
  readonly done: (mirror: DeploymentMirror) => void;
};

class BackgroundMirror implements IssueMirror {
  readonly #options: IssueMirrorOptions;
  readonly #tasks = new Map<string, Task>();
  readonly #stop = new AbortController();
  #working: Promise<void> | undefined;

  constructor(options: IssueMirrorOptions) {
    this.#options = options;
  }

  show(record: DeploymentRecord, done: (mirror: DeploymentMirror) => void): void {
    if (this.#stop.signal.aborted) return;
    this.#tasks.delete(record.id);
    this.#tasks.set(record.id, { record, done });
    if (this.#tasks.size > QUEUE_MAX) this.#giveUpOldest();
    this.#working ??= this.#work()
      .catch((error: unknown) => {
        this.#options.report('deployments.mirror_failed', error as Error);
      })
      .finally(() => {
        this.#working = undefined;
      });
  }

  pending(): number {
    return this.#tasks.size;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#tasks.clear();
    await this.#working;
  }

  async #work(): Promise<void> {
    // The caller is a job: it goes on first.
    await Promise.resolve();
    for (let tries = 0; !this.#stop.signal.aborted;) {
      const next = this.#tasks.entries().next().value;
      if (next === undefined) break;
      const [id, task] = next;
      const failure = await this.#try(task);
      const isLatest = this.#tasks.get(id) === task;
      if (failure === undefined) {
        tries = 0;
        if (isLatest) this.#tasks.delete(id);
        continue;
      }
      if (this.#stop.signal.aborted || failure.reason === 'SHUTTING_DOWN') break;
      tries++;
      const hopeless = tries >= TRIES_MAX || isRefusal(failure);
      this.#options.report('deployments.mirror_failed', failure);
      if (hopeless) {
        tries = 0;
        if (isLatest) this.#tasks.delete(id);
      } else {
        await this.#pause(tries, failure);
      }
    }
  }

  /** Undefined when the comment is there. */
  async #try({ record, done }: Task): Promise<AppError | undefined> {
    const { config, client, clock } = this.#options;
    const { host } = config();
    const issueNumber = record.mirror?.issueNumber ?? config().deploymentLog.issueNumber;
    if (host.owner === '' || host.repo === '' || issueNumber === 0) return undefined;
    const commentId = record.mirror?.commentId;
    try {
      const comment = await writeComment(client, `/repos/${host.owner}/${host.repo}`, {
        issueNumber,
        commentId,
        marker: markerOf(record.id),
        body: commentBody(record),
      });
      done({ issueNumber, ...comment, syncedAt: new Date(clock.nowMs()).toISOString() });
      return undefined;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      // What is owed at the end is reported by the absence of its time.
      if (!this.#stop.signal.aborted && error.reason !== 'SHUTTING_DOWN') {
        const text = error.message.slice(0, ERROR_CHARS_MAX);
        done({ ...record.mirror, issueNumber, error: text });
      }
      return error;
    }
  }

  async #pause(tries: number, failure: AppError): Promise<void> {
    const asked = Number(failure.metadata['retryAfterSeconds'] ?? 0) * 1000;
    const fullMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** tries);
    const ms = Math.max(asked, fullMs * (0.5 + this.#options.random() / 2));
    try {
      await this.#options.wait(ms, this.#stop.signal);
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  #giveUpOldest(): void {
    const oldest = this.#tasks.values().next().value;
    if (oldest === undefined) return;
    this.#tasks.delete(oldest.record.id);
    const error = new AppError('QUEUE_FULL', 'too many deployments wait for their comment');
    oldest.done({ issueNumber: 0, ...oldest.record.mirror, error: error.message });
    this.#options.report('deployments.mirror_failed', error);
  }
}

/** Asking again will not help: no rights, no such issue, a body it does not take. */
function isRefusal(error: AppError): boolean {
  const status = Number(error.metadata['status'] ?? 0);
  return status >= 400 && status < 500 && status !== 408;
}

type CommentRequest = {
  readonly issueNumber: number;
  readonly commentId: number | undefined;
  readonly marker: string;
  readonly body: string;
};
type Comment = { readonly commentId: number; readonly url: string };

/**
 * Edits the deployment's comment, else creates it. It is looked for by its marker first, so that a try
 * whose answer was lost leads to an edit, not to a second comment.
 */
async function writeComment(
  client: HostClient,
  repository: string,
  request: CommentRequest,
): Promise<Comment> {
  const { issueNumber, commentId, marker, body } = request;
  const comments = `${repository}/issues/comments`;
  const edit = (id: number, accept: readonly number[]): Promise<HostAnswer> =>
    client.send({ method: 'PATCH', path: `${comments}/${id}`, body: { body }, accept });
  if (commentId !== undefined) {
    const answer = await edit(commentId, [404]);
    // Somebody deleted it: made anew below.
    if (answer.status !== 404) return commentOf(answer);
  }
  const found = await findComment(client, `${repository}/issues/${issueNumber}`, marker);
  if (found !== undefined) return commentOf(await edit(found, []));
  return commentOf(
    await client.send({
      method: 'POST',
      path: `${repository}/issues/${issueNumber}/comments`,
      body: { body },
    }),
  );
}

async function findComment(
  client: HostClient,
  issue: string,
  marker: string,
): Promise<number | undefined> {
  const { pages } = await fetchPages(client, `${issue}/comments?per_page=100`, {}, () => []);
  for (const item of pages.flatMap((page) => page.items ?? [])) {
    const comment = objectOf(item);
    // At the beginning only: a person who quotes the comment does not take it over.
    if (isCount(comment?.['id']) && textOf(comment['body']).startsWith(marker))
      return comment['id'];
  }
  return undefined;
}

function commentOf(answer: HostAnswer): Comment {
  const comment = objectOf(answer.json);
  const id = comment?.['id'];
  if (!isCount(id)) {
    throw new AppError('UPSTREAM_ERROR', 'the code host answered without the comment');
  }
  return { commentId: id, url: textOf(comment?.['html_url']) };
}

function markerOf(deploymentId: string): string {
  return `<!-- runner-deployment:${deploymentId} -->`;
}

const SIGNS = {
  pending: '⏳ pending',
  in_progress: '⏳ in progress',
  success: '✅ success',
  failure: '❌ failure',
  cancelled: '⚪ cancelled',
} as const;

/** The comment's Markdown. What comes from workflows is shown as code, so that it can neither format nor mention. */
function commentBody(record: DeploymentRecord): string {
  const lines = [
    markerOf(record.id),
    `### Deployment to ${code(record.environment)}: ${SIGNS[record.status]}`,
    '',
    '| | |',
    '|---|---|',
    `| Workflow | ${code(record.workflow)} |`,
    `| Run | ${code(record.runId)}, job ${code(record.jobId)} |`,
    `| Ref | ${code(record.ref)} at ${code(record.sha.slice(0, 12))} |`,
    ...(record.url === undefined ? [] : [`| URL | ${linkOf(record.url)} |`]),
    `| Begun | ${record.createdAt} |`,
    `| Changed | ${record.updatedAt} |`,
    '',
    '| Job | Conclusion | Seconds |',
    '|---|---|---|',
    ...record.jobs.map(
      ({ name, conclusion, durationMs }) =>
        `| ${code(name)} | ${conclusion ?? 'not ended'} | ${durationMs === undefined ? '' : (durationMs / 1000).toFixed(1)} |`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}

function linkOf(url: string): string {
  return /^https?:\/\/[^\s<>|]+$/.test(url) ? `<${url}>` : code(url);
}

function code(text: string): string {
  const line = text
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .replaceAll('`', "'")
    .replaceAll('|', '¦')
    .slice(0, 200)
    .trim();
  return line === '' ? '' : `\`${line}\``;
}
