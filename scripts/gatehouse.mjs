// The command `gatehouse`, quick to start.
import './source-cache.mjs';

await import('../src/gatehouse.ts');
