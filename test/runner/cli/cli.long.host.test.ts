/* Colours, and other signals that end a run. */
import './cli.host.test.ts';
