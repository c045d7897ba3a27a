// The runner's command, quick to start.
import './source-cache.mjs';

await import('../src/runner/cli-main.ts');
