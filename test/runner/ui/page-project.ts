import { join } from 'node:path';
import type { Runner } from '../../../src/runner/runner.ts';
import { makeWorkspace, startRunner, type WhenDone } from '../../support/runner.ts';
import { byLength } from '../../support/test-length.ts';

/** Runs until its gate, a file of the project, is there. */
export const GATED = `name: Gated
run-name: For \${{ inputs.who }}
on:
  push:
  workflow_dispatch:
    inputs:
      who: { required: true, description: Whom to greet }
      loud: { type: boolean, default: true }
      level: { type: choice, options: [low, high], default: high }
      count: { type: number, default: 2 }
jobs:
  greet:
    runs-on: ubuntu-latest
    steps:
      - name: Greet
        env: { TEXT: '\${{ toJSON(inputs) }}', GATE: '\${{ vars.GATE }}' }
        run: |
          echo "Hello $(echo "$TEXT" | tr -d '\\n ')"
          printf '\\033[32mgreen\\033[0m plain\\n'
          until [ -e "$GATE" ]; do sleep 0.05; done
          echo second
          echo "# Well done" >> "$GITHUB_STEP_SUMMARY"
          echo "::warning file=a.ts,line=3::careful"
      - run: echo 0123456789 > digits
      - uses: actions/upload-artifact@v4
        with: { name: digits, path: digits }
      - run: echo '<script>document.title = "ran"</script>' > page.html
      - uses: actions/upload-artifact@v7
        with: { path: page.html, archive: false }
  after: { needs: greet, runs-on: ubuntu-latest, steps: [{ run: echo after }] }
`;
const EVENTS = `on:
  push: { branches: [main] }
  schedule: [{ cron: '30 5 * * 1', timezone: Europe/Paris }]
  workflow_dispatch:
jobs:
  show:
    runs-on: ubuntu-latest
    steps: [{ name: Show, run: 'echo "\${{ github.event_name }} \${{ github.ref }} \${{ github.event.schedule }}"' }]
`;
export const FLAKY = `on: workflow_dispatch
jobs:
  good: { runs-on: ubuntu-latest, steps: [{ run: echo good }] }
  bad:
    runs-on: ubuntu-latest
    steps: [{ name: Try, run: 'echo trying; [ -e "$GATE" ]', env: { GATE: '\${{ vars.GATE }}' } }]
`;
const STUBBORN = `on: workflow_dispatch
jobs:
  nap:
    runs-on: ubuntu-latest
    steps: [{ run: "trap '' INT TERM; echo sleeping; while true; do sleep 0.1; done" }]
`;
const IMAGE = '<img src=x onerror="window.hacked=1">';
const HOSTILE = `name: '${IMAGE}'
run-name: '${IMAGE}\${{ inputs.text }}'
on:
  workflow_dispatch:
    inputs:
      text: { description: '${IMAGE}', default: '"><script>window.hacked=2</script>' }
      pick: { type: choice, options: ['"><b>x', '${IMAGE}'] }
env: { SHOWN: '${IMAGE}' }
jobs:
  job:
    name: '${IMAGE}'
    runs-on: ubuntu-latest
    environment: { name: '${IMAGE}', url: 'javascript:window.hacked=3' }
    outputs: { out: '\${{ steps.s.outputs.out }}' }
    steps:
      - name: '</summary>${IMAGE}'
        id: s
        run: |
          echo '${IMAGE}'
          echo '</pre></details><script>window.hacked=4</script>'
          printf '\\033]8;;javascript:alert(1)\\007link\\033]8;;\\007\\n'
          echo "::error title=<b>bold,file=<i>x::</div>${IMAGE}"
          echo 'out=${IMAGE}' >> "$GITHUB_OUTPUT"
          printf '%s\\n\\n[click](javascript:window.hacked=5) <b>bold</b> **${IMAGE}** \\n' '${IMAGE}' >> "$GITHUB_STEP_SUMMARY"
          exit 1
`;
/** Lines of a log that is longer than what the page fetches, and how many those are. */
export const LONG_LINES = 250_000;
export const TAIL_LINES = byLength(5_000, 200_000);
const LONG = `on: workflow_dispatch
jobs:
  long: { runs-on: ubuntu-latest, steps: [{ name: Long, run: 'seq 1 ${LONG_LINES} | sed "s/^/line /"' }] }
`;
export const FLOOD_LINES = byLength(10_000, 100_000);
const FLOOD = `on: workflow_dispatch
jobs:
  flood: { runs-on: ubuntu-latest, steps: [{ name: Flood, run: 'seq 1 ${FLOOD_LINES} | sed "s/^/line /"' }] }
`;

/** All workflows of the page's tests, by file. */
export const WORKFLOWS = {
  'gated.yml': GATED,
  'events.yml': EVENTS,
  'flaky.yml': FLAKY,
  'stubborn.yml': STUBBORN,
  'hostile.yml': HOSTILE,
  'a&b"<i>.yml': `name: '${IMAGE}'\non: push\njobs: { a: { runs-on: x, '${IMAGE}': 1 } }\n`,
  'long.yml': LONG,
  'flood.yml': FLOOD,
};

/** Text: it runs in the page, whose names are not known here. */
export const LOOK_FOR_MARKUP = `(() => {
  const main = document.querySelector('main');
  const count = (selector, isBad = () => true) =>
    [...main.querySelectorAll(selector)].filter(isBad).length;
  return {
    images: count('img, script, svg:not(.icon svg), b, i'),
    hacked: 'hacked' in window,
    links: count('a', (link) => /^javascript:/i.test(link.href)),
    handlers: count('*', (one) => one.getAttributeNames().some((name) => name.startsWith('on'))),
  };
})()`;

export type Project = {
  readonly url: string;
  readonly gate: string;
  readonly workspace: string;
  readonly runner: Runner;
};

/** A runner on a project with these workflows; the variable GATE names a file that is not there. */
export async function startProject(
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  whenDone?: WhenDone,
): Promise<Project> {
  const workspace = makeWorkspace(
    Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`.github/workflows/${name}`, text]),
    ),
    true,
    whenDone,
  );
  const { url, runner } = await startRunner(workspace, env, undefined, undefined, whenDone);
  const gate = join(workspace, '.runner', 'gate');
  await runner.parts.secrets.putVariable({ name: 'GATE', value: gate });
  return { url, gate, workspace, runner };
}
