import { makeWorkspace, type WhenDone } from '../../support/runner.ts';

const OK = `name: Build it
on:
  push:
  workflow_dispatch:
    inputs:
      who: { default: world }
      level: { type: choice, options: [low, high] }
      count: { type: number }
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - name: Greet
        env: { WHO: '\${{ inputs.who }}' }
        run: |
          echo "::group::Inside"
          echo "Hello $WHO"
          echo "::endgroup::"
          printf '\\033[31mred\\033[0m\\033]0;title\\007\\033[2J end\\n'
          echo "::warning file=a.ts,line=3::careful"
          echo "## Well done" >> "$GITHUB_STEP_SUMMARY"
          echo 0123 > digits
      - uses: actions/upload-artifact@v4
        with: { name: digits, path: digits }
  after: { needs: build, runs-on: ubuntu-latest, steps: [{ run: echo after }] }
`;
const FAIL = `on: workflow_dispatch
jobs:
  good: { runs-on: ubuntu-latest, steps: [{ run: echo fine }] }
  bad:
    runs-on: ubuntu-latest
    steps: [{ name: Break, run: 'echo because of this; [ -e "$GATE" ]', env: { GATE: '\${{ vars.GATE }}' } }]
`;
const SKIP = `on: workflow_dispatch
jobs: { none: { if: false, runs-on: ubuntu-latest, steps: [{ run: exit 1 }] } }
`;
const NAP = `on: workflow_dispatch
jobs:
  nap:
    runs-on: ubuntu-latest
    steps:
      - run: echo sleeping; while true; do sleep 0.1; done
      - if: always()
        run: echo cleaned up
`;
const STUBBORN = `on: workflow_dispatch
jobs:
  nap:
    runs-on: ubuntu-latest
    steps: [{ run: "trap '' INT TERM; echo pid=$$; echo sleeping; while true; do sleep 0.1; done" }]
`;
const EVENT = `on: [push, workflow_dispatch]
jobs:
  show:
    runs-on: ubuntu-latest
    steps: [{ run: 'echo "\${{ github.event_name }} \${{ github.event.after }}"' }]
`;
const PARTS = `on: { workflow_dispatch: , schedule: [{ cron: '30 5 * * *', timezone: Asia/Tokyo }] }
jobs:
  first: { runs-on: ubuntu-latest, steps: [{ run: echo first }] }
  legs:
    needs: first
    runs-on: ubuntu-latest
    strategy: { matrix: { node: [18, 20], os: [linux, mac] } }
    steps:
      - env: { G: '\${{ secrets.GIVEN }}', I: '\${{ secrets.INHERITED }}', F: '\${{ secrets.FILED }}' }
        run: echo "\${{ matrix.node }} \${{ matrix.os }} \${{ vars.PLACE }} \${#G} \${#I} \${#F}"
  lone: { runs-on: ubuntu-latest, steps: [{ run: echo lone }] }
`;
const scheduled = (cron: string): string =>
  `on: { schedule: [{ cron: '${cron}' }] }\njobs: { a: { runs-on: x, steps: [{ run: ls }] } }\n`;
const BROKEN = 'on: push\njobs:\n  a:\n    runs-on: x\n    stepz: []\n';

/** A workspace with a workflow for each thing that the command shows, of git where `isGit`. It goes when its test is over, or `whenDone` says so. */
export function cliProject(isGit = false, whenDone?: WhenDone): string {
  return makeWorkspace(
    {
      '.github/workflows/ok.yml': OK,
      '.github/workflows/fail.yml': FAIL,
      '.github/workflows/skip.yml': SKIP,
      '.github/workflows/nap.yml': NAP,
      '.github/workflows/stubborn.yml': STUBBORN,
      '.github/workflows/event.yml': EVENT,
      '.github/workflows/broken.yml': BROKEN,
      '.github/workflows/idle.yml': 'on: push\njobs:\n  rest: { runs-on: x }\n',
      '.github/workflows/beyond.yml': scheduled('0 */30 * * *'),
      '.github/workflows/quarters.yml': scheduled('20/15 * * * *'),
      '.github/workflows/parts.yml': PARTS,
    },
    isGit,
    whenDone,
  );
}
