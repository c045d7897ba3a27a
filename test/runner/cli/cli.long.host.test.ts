/* Both signals that end a run, colours, and what is served by a runner that goes meanwhile. */
import './cli.host.test.ts';
