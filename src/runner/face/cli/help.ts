export const COMMANDS = [
  'run',
  'list',
  'runs',
  'logs',
  'approve',
  'cancel',
  'rerun',
  'secrets',
  'actions',
] as const;
export type CommandName = (typeof COMMANDS)[number];

const WORKSPACE = `  -w, --workspace DIR    the project; default: RUNNER_WORKSPACE, else this directory`;
const FOLLOW = `  -q, --quiet            results only; of failed steps the last lines
      --json             one event a line, as GET /api/events sends them, with its type
${WORKSPACE}`;
const EXIT = `Exit code: 0 success or skipped, 1 failure, 2 wrong arguments, inputs or workflow,
130 cancelled. Ctrl-C cancels the run, a second one kills it.`;

const OF_COMMAND: Readonly<Record<CommandName, string>> = {
  run: `Runs a workflow and tells what happens until it ends.

Usage: runner run <workflow> [options]

  <workflow>             file name, with or without extension, or name of the workflow
  -i, --input NAME=VALUE an input, as often as there are inputs
      --strategy S       where it works: worktree, copy or none (in the project itself)
      --ref REF          branch, tag or commit; default: what is there
      --allow-push       git push of its steps goes to the project's remotes; otherwise what
                         they push stands below refs/runner/ of the project
      --event NAME       as if this event had happened; default: workflow_dispatch
      --payload FILE     JSON document of the event, with --event
${FOLLOW}

${EXIT}`,
  list: `Lists the workflows of the project, with what is wrong with them.

Usage: runner list [options]

      --json             as GET /api/workflows shows them
${WORKSPACE}`,
  runs: `Lists runs, newest first.

Usage: runner runs [options]

      --status S         queued, in_progress, completed, failed or cancelled
      --workflow NAME    of this workflow only
      --limit N          at most so many; default 20
      --json             one run a line
${WORKSPACE}`,
  logs: `Prints the log of a run.

Usage: runner logs [<run>] [options]

  <run>                  its id, number or workflow#number; default: the newest
      --job ID           of this job only
      --step N           of this step only
      --tail N           only the last N lines of each step
${WORKSPACE}`,
  approve: `Lets a run of a pull request from another repository go on, which waits for that.

Usage: runner approve <run> [options]

  <run>                  its id, number or workflow#number
${WORKSPACE}`,
  cancel: `Cancels a run that another process runs; a second time kills it.

Usage: runner cancel [<run>] [options]

  <run>                  its id, number or workflow#number; default: the newest
${WORKSPACE}`,
  rerun: `Runs a finished run again and tells what happens until it ends.

Usage: runner rerun [<run>] [options]

  <run>                  its id, number or workflow#number; default: the newest
      --failed           only the jobs that failed, and those that need them
      --job ID           only this job, and those that need it
${FOLLOW}

${EXIT}`,
  secrets: `Keeps secrets. Values come from standard input, never from the command line.

Usage: runner secrets list [options]
       runner secrets set <NAME> [options] < value
       runner secrets delete <NAME> [options]

      --env NAME         environment; default: the whole repository
      --backend NAME     local (default) or vault
${WORKSPACE}`,
  actions: `Gets the actions that the workflows use, lists them, removes what none uses.

Usage: runner actions list [<workflow>] [options]
       runner actions fetch [<workflow>] [options]
       runner actions prune [options]

  <workflow>             file name, with or without extension, or name; default: all of them
      --update           fetch: asks again which commits branches and tags are
      --json             list: one action a line

fetch gets by git what is missing, nested actions included, and keeps which commit each is in
.runner/actions.lock. prune removes what was fetched and is used no more.
${WORKSPACE}`,
};

/** The help of one command, or of all. */
export function helpText(command: CommandName | undefined): string {
  if (command !== undefined) return OF_COMMAND[command];
  const lines = COMMANDS.map((name) => `  ${name.padEnd(9)}${OF_COMMAND[name].split('\n')[0]}`);
  return `Runs the workflows of .github/workflows on this machine.

Usage: runner <command> [options]

${lines.join('\n')}

\`runner <command> --help\` tells more. Through npm: \`npm run runner -- <command> …\`.
When a runner serves the workspace (npm run start:runner), the commands call it; RUNNER_API_TOKEN
is its token, else the one in .runner/api-token. NO_COLOR turns colours off.`;
}
