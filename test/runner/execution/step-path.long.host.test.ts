/* A runner that was started by npx, by npm within npm, and by node. */
import './step-path.host.test.ts';
